/** Shorter names have too many neighbours for a guess. */
const MIN_NAME_LENGTH = 4;
/** Longer texts are no misspelt names. */
const MAX_TEXT_LENGTH = 64;

/**
 * Returns the name that a misspelt text most likely stands for: the only one within one edit of it, ignoring case and
 * underscores. undefined: there is none, or several are as near.
 */
export function findNearestName(text: string, names: Iterable<string>): string | undefined {
  if (text.length > MAX_TEXT_LENGTH) return undefined;
  const candidates = [...names];
  const folded = foldName(text);
  const same = candidates.find((name) => foldName(name) === folded);
  if (same !== undefined) return same;
  const near = candidates.filter((name) => name.length >= MIN_NAME_LENGTH && isOneEditAway(folded, foldName(name)));
  return near.length === 1 ? near[0] : undefined;
}

/** Returns ": did you mean ...?" for an error message; empty where no name is near. */
export function suggestName(text: string, names: Iterable<string>): string {
  const name = findNearestName(text, names);
  return name === undefined ? "" : `: did you mean ${name}?`;
}

/** Returns the form in which names are compared: lower case, without underscores. */
export function foldName(name: string): string {
  return name.replaceAll("_", "").toLowerCase();
}

/** Returns whether at most one letter is inserted, deleted or changed, or two neighbours are swapped. */
export function isOneEditAway(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  let end = 0;
  while (end < Math.min(a.length, b.length) - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  const [restA, restB] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  if (restA.length <= 1 && restB.length <= 1) return true;
  return restA.length === 2 && restA === [...restB].reverse().join("");
}
