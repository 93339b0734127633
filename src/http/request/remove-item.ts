/**
 * Removes an item from a short list. Returns false if the list does not hold it.
 *
 * For items that come and go with every request on a long-lived connection: a Set would leave a chain of outgrown
 * tables that keep their former items alive until a full garbage collection.
 */
export function removeItem<T>(list: T[], item: T): boolean {
  const index = list.indexOf(item);
  if (index === -1) return false;
  // Not by copyWithin, which takes ten to forty times as long.
  for (let i = index + 1; i < list.length; i++) list[i - 1] = list[i] as T;
  list.pop();
  return true;
}
