import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { MessageStream, StreamHandlers } from "../../operations/operation.js";
import type { AnyStreamOperation } from "../request/mounted-service.js";
import type { RequestContext } from "../request/request-context.js";
import type { StreamOutcome, StreamTransport } from "./stream-transport.js";

/** A call of a server-streaming operation. */
export interface StreamingCall {
  readonly context: RequestContext;
  readonly operation: AnyStreamOperation;
  readonly request: Message;
  readonly transport: StreamTransport;
  /** Time until the caller's deadline in milliseconds; undefined: none given. */
  readonly remainingMs: number | undefined;
  /** Fires at that deadline, where another timer than the stream's own watches it. */
  readonly signal?: AbortSignal;
}

/** The open streams of a server. */
export interface StreamingCalls {
  /** Runs an operation until its stream ends. */
  open(call: StreamingCall): void;
}

/** Unread bytes of one stream from which on it is not ready: 10,000 readers that do not read take 40 MB. */
const READY_BELOW_BYTES = 4 * 1024;

/** How long operations may take to end their streams after they were told that the server stops. */
const DRAIN_MS = 1000;

/** Streams that are drained in one turn of the event loop. */
const DRAINED_PER_TURN = 100;

/**
 * Creates the registry of open streams.
 * @param draining ends them: each operation may send a last message
 */
export function createStreamingCalls(draining: AbortSignal): StreamingCalls {
  const open = new Set<OpenStream>();

  function drain(streams: readonly OpenStream[], from = 0): void {
    const next = from + DRAINED_PER_TURN;
    for (const stream of streams.slice(from, next)) stream.drain();
    if (next < streams.length) setImmediate(() => drain(streams, next));
    else {
      setTimeout(() => {
        for (const stream of streams) stream.interrupt();
      }, DRAIN_MS).unref();
    }
  }
  draining.addEventListener("abort", () => {
    if (open.size > 0) drain([...open]);
  });

  return {
    open(call) {
      const stream = new OpenStream(call, (ended) => open.delete(ended));
      open.add(stream);
      stream.start();
      if (draining.aborted) drain([stream]);
    },
  };
}

/** The state of one stream. A class because there are thousands: its methods are shared. */
class OpenStream implements MessageStream<Message> {
  private isOpen = true;
  private messages = 0;
  private unreadBytes = 0;
  /** Whether the operation waits for `onReady`. */
  private isAwaited = false;
  private handlers: StreamHandlers | undefined = undefined;
  private timer: NodeJS.Timeout | undefined = undefined;

  constructor(
    private readonly call: StreamingCall,
    private readonly onClose: (stream: OpenStream) => void,
  ) {}

  start(): void {
    const { context, operation, request, remainingMs, signal } = this.call;
    const callContext = context.toCallContext(remainingMs);
    // Of a signal that has fired there is no event: the request may have arrived after its deadline, or be gone. Who waits for
    // messages has to be told so before the end of the request closes the stream without a word.
    if (signal?.aborted) this.end(signal.reason);
    context.onEnd(() => {
      callContext.addLogFields({ messages: this.messages });
      this.close();
    });
    if (signal?.aborted) return;
    try {
      const handlers = operation(request as never, this, callContext);
      if (this.isOpen) this.handlers = handlers;
      else handlers.onEnd();
    } catch (error) {
      this.end(error);
    }
    if (!this.isOpen) return;
    if (signal !== undefined) signal.addEventListener("abort", () => this.end(signal.reason), { once: true });
    else if (remainingMs !== undefined) {
      this.timer = setTimeout(
        () => this.end(new ConnectError("the operation timed out", Code.DeadlineExceeded)),
        Math.max(remainingMs, 0),
      );
    }
  }

  isReady(): boolean {
    if (this.isOpen && this.unreadBytes < READY_BELOW_BYTES) return true;
    this.isAwaited = true;
    return false;
  }

  send(message: Message): void {
    if (!this.isOpen) return;
    try {
      const bytes = this.call.transport.write(message, () => this.onFlushed(bytes));
      this.unreadBytes += bytes;
      this.messages += 1;
    } catch (error) {
      this.end(error);
    }
  }

  end(error?: unknown): void {
    this.finish(error === undefined ? { kind: "complete" } : { kind: "failed", error });
  }

  interrupt(): void {
    this.finish({ kind: "interrupted" });
  }

  drain(): void {
    this.runHandler("onDrain");
  }

  private onFlushed(bytes: number): void {
    this.unreadBytes -= bytes;
    if (!this.isAwaited || this.unreadBytes > 0 || !this.isOpen) return;
    this.isAwaited = false;
    this.runHandler("onReady");
  }

  private runHandler(name: "onReady" | "onDrain"): void {
    try {
      this.handlers?.[name]();
    } catch (error) {
      this.end(error);
    }
  }

  private finish(outcome: StreamOutcome): void {
    if (!this.isOpen) return;
    this.close();
    this.call.transport.finish(outcome);
  }

  private close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    clearTimeout(this.timer);
    this.onClose(this);
    const { handlers } = this;
    this.handlers = undefined;
    handlers?.onEnd();
  }
}
