const NAME = /^[a-z][a-z0-9-]*$/;
const VALUE = /^[\x21-\x7e]+$/;

/** Throws where an operation says of its answer what no header can hold. */
export function checkMetadata(entries: Readonly<Record<string, string>>): void {
  for (const name in entries) {
    if (NAME.test(name) && VALUE.test(entries[name] ?? "")) continue;
    throw new TypeError(`${name} cannot be metadata`);
  }
}
