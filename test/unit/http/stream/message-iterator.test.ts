import { setImmediate } from "node:timers/promises";
import type { Message } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import type { RequestContext } from "../../../../src/http/request/request-context.js";
import { iterateMessages } from "../../../../src/http/stream/message-iterator.js";
import { createStreamingCalls } from "../../../../src/http/stream/streaming-calls.js";

test("ends the messages of a call whose caller is gone before it begins", async () => {
  const { signal } = new AbortController();
  const reason = new Error("gone");
  const context = {
    toCallContext: () => ({ addLogFields() {} }),
    onEnd: (listener: () => void) => listener(),
  } as unknown as RequestContext;
  const messages = iterateMessages(createStreamingCalls(signal), {
    context,
    operation: () => {
      throw new Error("it must not begin");
    },
    request: {} as Message,
    remainingMs: undefined,
    signal: AbortSignal.abort(reason),
  });
  await expect(Promise.race([messages.next(), setImmediate("waits")])).rejects.toBe(reason);
});
