/**
 * Removes an item from a short list. Returns false if the list does not hold it.
 *
 * For items that come and go with every request on a long-lived connection: a Set would leave a chain of outgrown
 * tables that keep their former items alive until a full garbage collection.
 */
export function removeItem<T>(list: T[], item: T): boolean {
  const index = list.indexOf(item);
  if (index === -1) return false;
  list.copyWithin(index, index + 1);
  list.pop();
  return true;
}
