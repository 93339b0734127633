const NAME_PATTERN = /^[a-z][a-z0-9-]*$/;
const VALUE_PATTERN = /^[\x21-\x7e]+$/;

/** Throws if response metadata of an operation is not valid in a header. */
export function assertValidMetadata(entries: Readonly<Record<string, string>>): void {
  for (const name in entries) {
    if (NAME_PATTERN.test(name) && VALUE_PATTERN.test(entries[name] ?? "")) continue;
    throw new TypeError(`invalid response metadata: ${name}`);
  }
}
