interface Closable {
  close(): unknown;
}

let open: Closable[] = [];

/** Closes something at the end of the running test, in unit tests only. */
export function closeAfterTest<T extends Closable>(item: T): T {
  open.push(item);
  return item;
}

/** Closes everything registered so far. */
export async function closeAll(): Promise<void> {
  const items = open;
  open = [];
  await Promise.all(items.map((item) => item.close()));
}
