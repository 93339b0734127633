import { create, equals, type MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client, Code, ConnectError } from "@connectrpc/connect";
import {
  type BridgeService,
  WatchTransfersRequestSchema,
  type WatchTransfersResponse,
  WatchTransfersResponseSchema,
} from "../../gen/hop/bridge/v1/bridge_pb.js";
import { computeRetryDelayMs, getErrorDetails, isTemporary } from "./error-details.js";

type Request = MessageInitShape<typeof WatchTransfersRequestSchema>;
type WatchClient = Pick<Client<typeof BridgeService>, "watchTransfers">;

/** A state of a transfer, or that nobody knows it. `resumeToken` resumes the watch after it, in another process too. */
export type WatchEvent = WatchTransfersResponse & {
  readonly event: Extract<WatchTransfersResponse["event"], { readonly case: "transfer" | "unknown" }>;
};

export interface WatchTransfersOptions extends Pick<CallOptions, "headers"> {
  /** Ends the watch with a ConnectError of the code Canceled. */
  readonly signal?: AbortSignal;
  /** Called before each pause after an attempt that failed. What it throws ends the watch. */
  readonly onRetry?: (error: ConnectError, delayMs: number) => void;
}

/** A stream that is silent for longer is dead: the service sends a bookmark every 15 s. */
const MAX_SILENCE_MS = 45_000;

/** The last events of this many transfers are remembered. */
const MAX_REMEMBERED = 1_000;

/**
 * Watches transfers: returns the present state of each, then every change, until all are final. A stream that the server
 * ends before, that breaks off or falls silent is resumed where it ended, for as long as it takes: with back-off, jitter
 * and `Retry-After`. No state is returned twice in a row. Ends the call when the loop is left.
 *
 * Throws the service's error for a request that it rejects, such as INVALID_PARAMETER or INDEX_REQUIRED, and an error of
 * a proxy that refuses access. A `timeoutMs` of the client does not apply.
 *
 * @param client of any transport: Connect, gRPC or gRPC-Web
 *
 * @example
 * for await (const { event } of watchTransfers(bridge, { transferHash: [hash] }, { signal })) {
 *   if (event.case === "transfer") console.log(event.value.transferId, event.value.state);
 * }
 */
export async function* watchTransfers(
  client: WatchClient,
  request: Request,
  { signal, headers, onRetry }: WatchTransfersOptions = {},
): AsyncGenerator<WatchEvent, void, undefined> {
  const message = create(WatchTransfersRequestSchema, request);
  const isRepeated = createRepeatDetector();
  const { resumeToken: givenToken } = message;
  let resumeToken = givenToken;
  for (let failures = 0; ; ) {
    const attempt = openAttempt(signal);
    let isInterrupted = false;
    let error: ConnectError | undefined;
    try {
      const options = { ...(headers && { headers }), signal: attempt.signal, timeoutMs: 0 };
      for await (const received of client.watchTransfers({ ...message, resumeToken }, options)) {
        attempt.touch();
        failures = 0;
        isInterrupted = received.event.case === "bookmark";
        if (received.resumeToken !== "") resumeToken = received.resumeToken;
        if (!isWatchEvent(received) || isRepeated(received)) continue;
        // A caller that takes its time with an event is no silence of the service.
        attempt.pause();
        yield received;
        attempt.touch();
      }
      if (!isInterrupted) return;
    } catch (caught) {
      if (signal?.aborted) throw toAbortError(signal);
      error = ConnectError.from(caught);
      // Another version of the service may not know the token: it starts again, and what is known is dropped.
      if (isTokenRefused(error) && resumeToken !== givenToken) resumeToken = "";
      else if (!attempt.isSilent() && !isTemporary(error)) throw error;
    } finally {
      attempt.close();
    }
    const delayMs = computeRetryDelayMs(failures, error);
    if (error !== undefined) {
      failures += 1;
      onRetry?.(error, delayMs);
    }
    await pause(delayMs, signal);
  }
}

function isWatchEvent(message: WatchTransfersResponse): message is WatchEvent {
  return message.event.case === "transfer" || message.event.case === "unknown";
}

function isTokenRefused(error: ConnectError): boolean {
  return getErrorDetails(error)?.field === "resumeToken";
}

/** Creates the signal of one call: aborted with the caller's, and when the stream is silent for too long. */
function openAttempt(signal: AbortSignal | undefined) {
  const controller = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isSilent = false;
  const abort = (): void => controller.abort(signal?.reason);
  const stopTimer = (): void => clearTimeout(timer);
  function touch(): void {
    stopTimer();
    timer = setTimeout(() => {
      isSilent = true;
      controller.abort();
    }, MAX_SILENCE_MS);
  }
  if (signal?.aborted) abort();
  else signal?.addEventListener("abort", abort);
  touch();
  return {
    signal: controller.signal,
    touch,
    pause: stopTimer,
    isSilent: () => isSilent,
    close(): void {
      stopTimer();
      signal?.removeEventListener("abort", abort);
      controller.abort();
    },
  };
}

/** @throws ConnectError when the signal is aborted */
function pause(delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    function abort(): void {
      clearTimeout(timer);
      reject(toAbortError(signal));
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, delayMs);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

function toAbortError(signal: AbortSignal | undefined): ConnectError {
  const { reason } = signal ?? {};
  return new ConnectError("the watch was aborted", Code.Canceled, undefined, undefined, reason);
}

/**
 * Returns a function that tells whether an event only repeats the last one about its transfer. A service repeats states
 * when the token of a resumed watch is too old.
 */
function createRepeatDetector(): (event: WatchEvent) => boolean {
  const lastByKey = new Map<string, WatchEvent>();

  /** Forgets what the event makes obsolete: that its transaction is unknown, or the transfers of an unknown one. */
  function forgetContradicted({ event }: WatchEvent): void {
    if (event.case === "transfer") {
      lastByKey.delete(event.value.transactionHash);
      lastByKey.delete(event.value.bondTransactionHash);
      return;
    }
    const { transferHash } = event.value;
    if (transferHash === "") return;
    for (const [key, { event: last }] of lastByKey) {
      if (last.case !== "transfer") continue;
      const { transactionHash, bondTransactionHash } = last.value;
      if (transactionHash === transferHash || bondTransactionHash === transferHash) lastByKey.delete(key);
    }
  }

  return (event) => {
    const { value } = event.event;
    const key = value.transferId || ("transferHash" in value ? value.transferHash : value.transactionHash);
    const compared = { ...event, resumeToken: "" };
    const last = lastByKey.get(key);
    if (last !== undefined && equals(WatchTransfersResponseSchema, last, compared)) return true;
    forgetContradicted(event);
    // The one that was remembered the longest goes first.
    lastByKey.delete(key);
    lastByKey.set(key, compared);
    const [oldest] = lastByKey.keys();
    if (lastByKey.size > MAX_REMEMBERED && oldest !== undefined) lastByKey.delete(oldest);
    return false;
  };
}
