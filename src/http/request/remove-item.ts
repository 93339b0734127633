/**
 * Takes an item out of a short list; false where it is not there.
 *
 * For what comes and goes with every request on a connection that stays: a Set leaves a chain of outgrown tables there,
 * which keep what they once held alive until a full garbage collection.
 */
export function removeItem<T>(list: T[], item: T): boolean {
  const index = list.indexOf(item);
  if (index === -1) return false;
  list.copyWithin(index, index + 1);
  list.pop();
  return true;
}
