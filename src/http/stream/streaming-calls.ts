import type { Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { MessageStream, StreamHandlers } from "../../operations/operation.js";
import { monotonicNow } from "../../resilience/clock.js";
import type { AnyStreamOperation } from "../request/mounted-service.js";
import type { RequestContext } from "../request/request-context.js";

/** How a stream ends. */
export type StreamOutcome =
  | { readonly kind: "complete" }
  /** The caller is to resume it. */
  | { readonly kind: "interrupted" }
  | { readonly kind: "failed"; readonly error: unknown };

/** Sends the messages of one stream in the form of its protocol. */
export interface StreamTransport {
  /**
   * Writes a message and returns the bytes that it takes until `onFlushed` is called: when the caller's connection has
   * taken them. Throws if the message does not serialise.
   */
  write(message: Message, onFlushed: () => void): number;
  /** Ends the response. Called once. */
  finish(outcome: StreamOutcome): void;
}

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

/** Unread bytes of one stream from which on it is not ready: 10,000 readers that do not read take 40 MB. */
const READY_BELOW_BYTES = 4 * 1024;

/** What a message for Connect counts as unread: the stream is ready again when the reader asks for the next. */
const MESSAGE_COST = 2 ** 30;

/** How long operations may take to end their streams after they were told that the server stops. */
const DRAIN_MS = 1000;

/**
 * How long streams are drained in one turn of the event loop, in milliseconds. Longer than what else one turn does, so that they
 * come first on a busy machine: whoever stops the process waits only a limited time.
 */
const DRAIN_TURN_MS = 200;

/** The open streams of a server. */
export class StreamingCalls {
  readonly #open = new Set<OpenStream>();
  readonly #draining: AbortSignal;
  readonly #now: () => number;
  /** Those that were open when the server stopped and have not been told yet, the last one first. */
  #untold: OpenStream[] = [];

  /**
   * @param draining ends the streams: each operation may send a last message
   * @param now monotonic clock, in milliseconds
   */
  constructor(draining: AbortSignal, now = monotonicNow) {
    this.#draining = draining;
    this.#now = now;
    draining.addEventListener("abort", () => {
      this.#untold = [...this.#open].reverse();
      this.#drainInTurns();
    });
  }

  /** Drains the streams that are left at once: for the end of the time that a stop may take. */
  drainRest(): void {
    this.#drainFor(Number.POSITIVE_INFINITY);
  }

  /** Runs an operation until its stream ends. */
  open(call: StreamingCall): void {
    const stream = new OpenStream(call, this.#open);
    this.#open.add(stream);
    stream.start();
    if (!this.#draining.aborted) return;
    stream.drain();
    interruptLater([stream]);
  }

  #drainInTurns(): void {
    this.#drainFor(DRAIN_TURN_MS);
    if (this.#untold.length > 0) setImmediate(() => this.#drainInTurns());
  }

  #drainFor(ms: number): void {
    const endsAt = this.#now() + ms;
    const told: OpenStream[] = [];
    do {
      const stream = this.#untold.pop();
      if (stream === undefined) break;
      told.push(stream);
      stream.drain();
    } while (this.#now() < endsAt);
    if (told.length > 0) interruptLater(told);
  }

  /** Yields the messages of a call, for Connect: it reads them as the caller does. */
  async *iterate(call: Omit<StreamingCall, "transport">): AsyncGenerator<Message> {
    const queue: { readonly message: Message; readonly onFlushed: () => void }[] = [];
    let outcome: StreamOutcome | undefined;
    let wake = (): void => {};
    this.open({
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
}

function interruptLater(streams: readonly OpenStream[]): void {
  setTimeout(() => {
    for (const stream of streams) stream.interrupt();
  }, DRAIN_MS).unref();
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
    private readonly openStreams: Set<OpenStream>,
  ) {}

  start(): void {
    const { context, operation, request, remainingMs, signal } = this.call;
    // Of a signal that has fired there is no event: the request may have arrived after its deadline, or be gone. Who waits for
    // messages has to be told so before the end of the request closes the stream without a word.
    if (signal?.aborted) this.end(signal.reason);
    context.onEnd(() => {
      context.addLogFields({ messages: this.messages });
      this.close();
    });
    if (signal?.aborted) return;
    try {
      const handlers = operation(request, this, context);
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
    this.openStreams.delete(this);
    const { handlers } = this;
    this.handlers = undefined;
    handlers?.onEnd();
  }
}
