import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { startBodyTimer } from "../../../../src/http/request/body.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { openRawSocket } from "../support/raw-client.js";

test.each([
  ["the time for a body", 20, undefined, "timeout"],
  ["the deadline of the caller", 60_000, 20, "deadline"],
])(
  "%s does not end while bytes that arrived in time wait for a busy process",
  async (_, timeoutMs, remainingMs, cause) => {
    const server = createServer().listen(0, "127.0.0.1");
    closeAfterTest({ close: async () => void server.close() });
    await once(server, "listening");
    const address = server.address() as { port: number };
    const [[accepted], sender] = await Promise.all([
      once(server, "connection") as Promise<[Socket]>,
      openRawSocket(address.port),
    ]);
    closeAfterTest({ close: async () => void sender.destroy() });
    const causes: string[] = [];

    const stop = startBodyTimer(timeoutMs, remainingMs, (each) => causes.push(each));
    const received = once(accepted, "data");
    accepted.once("data", stop);
    sender.write("the end of the body");
    const startedAt = performance.now();
    while (performance.now() - startedAt < 100);
    await received;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(causes).toEqual([]);

    startBodyTimer(timeoutMs, remainingMs, (each) => causes.push(each));
    await expect.poll(() => causes).toEqual([cause]);
  },
);

test("a deadline that has passed is a timer without a delay", () => {
  const setTimer = vi.spyOn(globalThis, "setTimeout");
  onTestFinished(() => setTimer.mockRestore());
  startBodyTimer(1000, -5, () => {})();
  expect(setTimer.mock.calls.map(([, delayMs]) => delayMs)).toEqual([0]);
});
