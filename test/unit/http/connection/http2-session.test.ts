import { EventEmitter } from "node:events";
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { expect, test } from "vitest";
import { deferSessionEnd, endSessionNow, refuseStream } from "../../../../src/http/connection/http2-session.js";

// Every call that would make nghttp2 send or free something while it reads has to wait, with every version of Node.js.

const calls: string[] = [];
class FakeSession extends EventEmitter {
  close(): void {
    calls.push("close");
  }
  destroy(error?: Error, code?: number): void {
    calls.push(`destroy ${error?.message} ${code}`);
  }
}
function createSession(): ServerHttp2Session {
  calls.length = 0;
  const session = new FakeSession() as unknown as ServerHttp2Session;
  deferSessionEnd(session);
  return session;
}
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

test.each<[string, (session: ServerHttp2Session) => void, string]>([
  ["closes", (session) => session.close(), "close"],
  [
    "ends once",
    (session) => {
      session.destroy(new Error("first"), 2);
      session.destroy(new Error("second"), 3);
    },
    "destroy first 2",
  ],
])("a session %s in the next turn of the event loop", async (_, end, expected) => {
  end(createSession());
  await Promise.resolve();
  expect(calls).toEqual([]);
  await nextTurn();
  expect(calls).toEqual([expected]);
});

test("a session ends at once where that is asked for", () => {
  const session = createSession();
  endSessionNow(session, new Error("now"), 1);
  expect(calls).toEqual(["destroy now 1"]);
});

test("streams that are refused end with one error, since Node.js creates an expensive one where there is none", async () => {
  const errors: unknown[] = [];
  for (let count = 0; count < 2; count++) {
    const stream = { close: () => stream.destroy(), destroy: (error?: Error) => void errors.push(error) };
    refuseStream(stream as unknown as ServerHttp2Stream);
  }
  await nextTurn();
  expect(errors).toEqual([expect.any(Error), expect.any(Error)]);
  expect(errors[0]).toBe(errors[1]);
});

test("a stream is refused in the next turn of the event loop", async () => {
  const codes: (number | undefined)[] = [];
  refuseStream({ close: (code) => void codes.push(code) } as ServerHttp2Stream);
  await Promise.resolve();
  expect(codes).toEqual([]);
  await nextTurn();
  expect(codes).toEqual([7]);
});
