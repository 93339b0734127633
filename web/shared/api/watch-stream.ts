import type { FailureEvent, TransferStatusResponse, UnknownTransfer } from "./api-types.js";

/**
 * State of a watch. `lost`: reconnects by itself, and nothing is missed meanwhile, since it resumes. `refused`: the service
 * opened no stream, and no further attempt is made.
 */
export type StreamState = "connecting" | "live" | "lost" | "refused" | "ended";

export interface WatchHandlers {
  onState(state: StreamState): void;
  onTransfer(transfer: TransferStatusResponse): void;
  onUnknown(unknown: UnknownTransfer): void;
  /** Called before the service ends a stream that failed. It is resumed. */
  onFailure(failure: FailureEvent): void;
}

/** The part of an EventSource that a watch uses. */
export interface EventStream {
  readonly readyState: number;
  addEventListener(name: string, listener: (event: StreamEvent) => void): void;
  close(): void;
}

/** Events that are not messages have no data. */
export interface StreamEvent {
  readonly data?: string;
}

export interface WatchOptions {
  /** Opens a stream that begins with the present states. */
  readonly openStream: () => EventStream;
  readonly visibility: PageVisibility;
  readonly handlers: WatchHandlers;
  readonly signal: AbortSignal;
}

/** A hidden page has no stream: a browser has few connections for each host. */
export interface PageVisibility {
  isHidden(): boolean;
  /** Calls a function at every change until the signal aborts. */
  onChange(listener: () => void, signal: AbortSignal): void;
}

/** A bookmark comes at least every 15 s: a connection that is silent for longer is dead. */
const MAX_SILENCE_MS = 45_000;
/** A service that restarts refuses streams for some time. EventSource gives up then. */
const REOPEN_DELAYS_MS: readonly number[] = [1_000, 4_000, 15_000];
/** `readyState` of an EventSource that does not reconnect. */
const CLOSED = 2;

/**
 * Watches transfers by an EventSource, which reconnects and resumes by itself, until the service ends the stream because
 * nothing can change any more, or the signal aborts.
 */
export function followStream({ openStream, visibility, handlers, signal }: WatchOptions): void {
  const stopping = new AbortController();
  let source: EventStream | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let hasBeenLive = false;
  let reopenings = 0;

  function open(): void {
    close();
    if (visibility.isHidden()) return;
    const opened = openStream();
    source = opened;
    expectEvents();
    opened.addEventListener("open", () => {
      hasBeenLive = true;
      reopenings = 0;
      expectEvents();
      handlers.onState("live");
    });
    opened.addEventListener("error", () => {
      if (opened.readyState === CLOSED) handleRefusal();
      else handleLoss();
    });
    listen(opened, "transfer", (data) => handlers.onTransfer(data as TransferStatusResponse));
    listen(opened, "unknown", (data) => handlers.onUnknown(data as UnknownTransfer));
    listen(opened, "failure", (data) => handlers.onFailure(data as FailureEvent));
    listen(opened, "bookmark", () => {});
    listen(opened, "end", () => {
      stop();
      handlers.onState("ended");
    });
  }

  function listen(target: EventStream, name: string, handle: (data: unknown) => void): void {
    target.addEventListener(name, ({ data = "{}" }) => {
      expectEvents();
      handle(JSON.parse(data));
    });
  }

  function expectEvents(): void {
    clearTimeout(timer);
    timer = setTimeout(handleSilence, MAX_SILENCE_MS);
  }

  /** EventSource waits and reconnects. */
  function handleLoss(): void {
    // An attempt can hang too.
    expectEvents();
    handlers.onState("lost");
  }

  function handleRefusal(): void {
    close();
    const delayMs = hasBeenLive ? REOPEN_DELAYS_MS[reopenings] : undefined;
    if (delayMs === undefined) {
      stop();
      handlers.onState("refused");
      return;
    }
    reopenings += 1;
    timer = setTimeout(open, delayMs);
    handlers.onState("lost");
  }

  function handleSilence(): void {
    handlers.onState("lost");
    open();
  }

  function handleVisibility(): void {
    if (visibility.isHidden()) close();
    else if (source === undefined) begin();
  }

  function begin(): void {
    handlers.onState("connecting");
    open();
  }

  function close(): void {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  }

  function stop(): void {
    close();
    stopping.abort();
  }

  if (signal.aborted) return;
  signal.addEventListener("abort", stop);
  visibility.onChange(handleVisibility, stopping.signal);
  begin();
}
