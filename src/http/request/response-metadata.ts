const NAME_PATTERN = /^[a-z][a-z0-9-]*$/;
const VALUE_PATTERN = /^[\x21-\x7e]+$/;

/** Throws where an operation says of its answer what no header can hold. */
export function assertValidMetadata(entries: Readonly<Record<string, string>>): void {
  for (const name in entries) {
    if (NAME_PATTERN.test(name) && VALUE_PATTERN.test(entries[name] ?? "")) continue;
    throw new TypeError(`${name} cannot be metadata`);
  }
}
