import { onTestFinished } from "vitest";

interface Closable {
  close(): unknown;
}

/** Closes something at the end of the running test, what was opened last first. */
export function closeAfterTest<T extends Closable>(item: T): T {
  onTestFinished(async () => {
    await item.close();
  });
  return item;
}
