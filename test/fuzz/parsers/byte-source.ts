/** Reads numbers and texts from the bytes that a fuzzer varies. Past the end, all bytes are 0. */
export interface ByteSource {
  isAtEnd(): boolean;
  takeByte(): number;
  /** Takes up to this many bytes. */
  takeBytes(count: number): Buffer;
  takeRest(): Buffer;
}

export function createByteSource(data: Buffer): ByteSource {
  let offset = 0;
  function takeBytes(count: number): Buffer {
    const bytes = data.subarray(offset, offset + count);
    offset += bytes.length;
    return bytes;
  }
  return {
    isAtEnd: () => offset >= data.length,
    takeByte: () => takeBytes(1)[0] ?? 0,
    takeBytes,
    takeRest: () => takeBytes(data.length),
  };
}

/** Returns what a function returns, or the error that it throws if it is of a declared type; throws any other error. */
export function catchDeclared<T, E extends Error>(
  run: () => T,
  ...types: readonly (abstract new (
    ...args: never[]
  ) => E)[]
): { readonly value: T } | { readonly error: E } {
  try {
    return { value: run() };
  } catch (error) {
    const declared = types.some((type) => error instanceof type);
    if (!declared) throw error;
    return { error: error as E };
  }
}
