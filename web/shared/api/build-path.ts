/** Builds an API path with query parameters; a list repeats its parameter. Leaves out empty parameters. */
export function buildPath(path: string, parameters: Readonly<Record<string, string | readonly string[]>>): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]) =>
    [value].flat().map((text): [string, string] => [name, text]),
  );
  const query = new URLSearchParams(pairs.filter(([, text]) => text !== ""));
  return query.size === 0 ? path : `${path}?${query}`;
}
