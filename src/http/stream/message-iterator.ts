import type { Message } from "@bufbuild/protobuf";
import type { StreamOutcome } from "./stream-transport.js";
import type { StreamingCall, StreamingCalls } from "./streaming-calls.js";

/** Counted for each message: the stream is ready again when the reader asks for the next. */
const MESSAGE_COST = 2 ** 30;

/** Yields the messages of a streaming call, for Connect: it reads them as the caller does. */
export async function* iterateMessages(
  calls: StreamingCalls,
  call: Omit<StreamingCall, "transport">,
): AsyncGenerator<Message> {
  const queue: { readonly message: Message; readonly onFlushed: () => void }[] = [];
  let outcome: StreamOutcome | undefined;
  let wake = (): void => {};
  calls.open({
    ...call,
    transport: {
      write(message, onFlushed) {
        queue.push({ message, onFlushed });
        wake();
        return MESSAGE_COST;
      },
      finish(given) {
        outcome = given;
        wake();
      },
    },
  });
  for (;;) {
    const next = queue.shift();
    if (next !== undefined) {
      yield next.message;
      next.onFlushed();
    } else if (outcome !== undefined) {
      if (outcome.kind === "failed") throw outcome.error;
      return;
    } else {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
}
