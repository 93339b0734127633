import { randomBytes, randomInt } from "node:crypto";
import { get, type IncomingMessage } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import type { Readable } from "node:stream";
import { connectChains, getBonder, getChainId, hopChains, type LocalChains } from "../../devnet/chain/local-chains.js";
import { fundAccount } from "../../devnet/chain/tokens.js";
import { deliverTransfer } from "../../devnet/transfer/deliver-transfer.js";
import { sendTransfer } from "../../devnet/transfer/send-transfer.js";
import { parseSentTransfers } from "../../devnet/transfer/sent-transfer.js";
import { type SoakState, sleep } from "./soak-traffic.js";

// The watches of the soak: of pending, final and unknown transfers, over both versions of HTTP, that leave at random and
// resume by their token while transfers are sent and delivered. What a watcher is told is compared with what has happened.

const ROUTE = ["polygon", "arbitrum"] as const;
const AMOUNT = 5n * 10n ** 18n;
const MAX_TRANSFERS = 2_000;
/** Longest time for which a watcher stays on one connection. */
const MAX_CONNECTED_MS = 60_000;
/** A state that a watcher has not heard of after this time is lost: longer than any fault and what it leaves. */
const MAX_DELAY_MS = 60_000;
/** The service speaks every 15 s: only a hang takes longer. */
const MAX_SILENCE_MS = 45_000;
/** Share of the watchers over HTTP/2, one in so many. */
const HTTP2_EVERY = 4;

/** What the watchers have seen. */
export interface WatchCounts {
  events: number;
  reconnects: number;
  completed: number;
  refused: number;
  readonly problems: string[];
}

/** The transfers of the soak by the hash of their transaction, newest last, and when each was delivered. */
type Transfers = Map<string, { deliveredAt: number | undefined }>;

/** Watches until the soak is over. Resolves when the last watch has ended. */
export async function runWatches(
  { url, watches }: { readonly url: string; readonly watches: number },
  { environment, ids }: { readonly environment: Readonly<Record<string, string>>; readonly ids: readonly string[] },
  state: SoakState,
): Promise<WatchCounts> {
  const counts: WatchCounts = { events: 0, reconnects: 0, completed: 0, refused: 0, problems: state.problems };
  const transfers: Transfers = new Map();
  const watchers = Array.from({ length: watches }, async (_, index) => {
    // They begin one after the other within ten seconds.
    await sleep((index / watches) * 10_000);
    while (!state.isOver) await watchOne({ url, isHttp2: index % HTTP2_EVERY === 0, transfers, ids }, counts, state);
  });
  await Promise.all([sendAndDeliver(environment, transfers, state), ...watchers]);
  return counts;
}

/** Sends a transfer every few seconds and delivers it some time later. */
async function sendAndDeliver(
  environment: Readonly<Record<string, string>>,
  transfers: Transfers,
  state: SoakState,
): Promise<void> {
  const urls = [...hopChains.keys()].map((slug) => {
    return [slug, { chainId: getChainId(slug), url: environment[`RPC_URL_${slug.toUpperCase()}`] ?? "" }] as const;
  });
  const chains: LocalChains = connectChains(Object.fromEntries(urls));
  const [source, destination] = ROUTE;
  const from = getBonder("HOP", source, destination);
  await fundAccount(chains, source, "HOP", from, AMOUNT * BigInt(MAX_TRANSFERS));
  const noSwap = { amountOutMin: 0n, deadline: 0, destinationAmountOutMin: 0n, destinationDeadline: 0 };
  const order = { token: "HOP", source, destination, from, recipient: from, amount: AMOUNT, bonderFee: 10n ** 17n };
  const deliveries: Promise<void>[] = [];
  // One after the other: they are transactions of one account.
  let last = Promise.resolve();
  for (; !state.isOver && transfers.size < MAX_TRANSFERS; await sleep(1_000)) {
    const { transactionHash, logs } = await sendTransfer(chains, { ...order, ...noSwap });
    const [sent] = parseSentTransfers(source, logs);
    if (sent === undefined) throw new Error("no transfer was sent");
    const transfer: { deliveredAt: number | undefined } = { deliveredAt: undefined };
    transfers.set(transactionHash, transfer);
    const deliver = async (): Promise<void> => {
      await sleep(randomInt(30_000));
      last = last.then(async () => {
        await deliverTransfer(chains, sent);
        transfer.deliveredAt = performance.now();
      });
      await last;
    };
    deliveries.push(deliver());
  }
  await Promise.all(deliveries);
}

interface WatcherDeps {
  readonly url: string;
  readonly isHttp2: boolean;
  readonly transfers: Transfers;
  /** IDs of transfers that are final or stay as they are. */
  readonly ids: readonly string[];
}

/** Watches one target over several connections, until it is complete or the watcher tires of it. */
async function watchOne({ url, isHttp2, transfers, ids }: WatcherDeps, counts: WatchCounts, state: SoakState) {
  const hash = pickHash(transfers, ids);
  const path = `/v1/transfers:watch?${hash}`;
  const transfer = transfers.get(hash.split("=")[1] ?? "");
  let token = "";
  /** The last message of each kind, by what it is about. */
  const known = new Map<string, string>();
  let wasDelivered = false;

  function onEvent({ event, id, data }: StreamEvent): void {
    counts.events += 1;
    if (id !== "") token = id;
    if (event === "bookmark" || event === "end") return;
    if (event === "failure") {
      counts.problems.push(`a watch failed: ${data}`);
      return;
    }
    const { transferId = "", state: told } = JSON.parse(data) as { transferId?: string; state?: string };
    const key = event === "transfer" ? transferId : "unknown";
    const message = `${told} ${event === "transfer" ? data : ""}`;
    if (known.get(key) === message) counts.problems.push(`a state was repeated: ${path} ${data}`);
    known.set(key, message);
    if (event !== "transfer") return;
    if (wasDelivered && told === "PENDING") counts.problems.push(`a delivery was taken back: ${path}`);
    if (told !== "PENDING") wasDelivered = true;
  }

  for (let connections = 1 + randomInt(5); connections > 0 && !state.isOver; connections -= 1) {
    const stream = await openStream(url, path, token, isHttp2);
    if (typeof stream === "string") {
      // All watchers are one caller, whose streams over HTTP/2 are limited together with its other requests.
      if (stream.includes("REFUSED_STREAM")) counts.refused += 1;
      else if (!state.isOver) counts.problems.push(`a watch got no response: ${stream} ${path}`);
      await sleep(1_000 + randomInt(4_000));
      continue;
    }
    if (stream.status === 204) {
      stream.close();
      counts.completed += 1;
      return;
    }
    if (stream.status !== 200) {
      stream.close();
      counts.problems.push(`a watch was answered with ${stream.status}: ${path}`);
      await sleep(1_000);
      return;
    }
    const ending = await readEvents(stream.body, randomInt(MAX_CONNECTED_MS), onEvent, state);
    stream.close();
    if (ending === "complete") counts.completed += 1;
    else if (ending !== "left") counts.problems.push(`a watch ended by itself: ${ending} ${path}`);
    checkDelivery(transfer?.deliveredAt, wasDelivered, stream.openedAt, path, counts);
    if (ending !== "left") return;
    counts.reconnects += 1;
  }
}

/** Notes a delivery that a watcher has not heard of though it was connected for long enough. */
function checkDelivery(
  deliveredAt: number | undefined,
  wasDelivered: boolean,
  openedAt: number,
  path: string,
  { problems }: WatchCounts,
): void {
  if (wasDelivered || deliveredAt === undefined) return;
  const lateBy = performance.now() - Math.max(deliveredAt, openedAt);
  if (lateBy > MAX_DELAY_MS / 2) problems.push(`a delivery was not told for ${Math.round(lateBy)} ms: ${path}`);
}

/** Picks a transfer that is under way, or final, or one that nobody knows. */
function pickHash(transfers: Transfers, ids: readonly string[]): string {
  const drawn = randomInt(10);
  const recent = [...transfers.keys()].slice(-40);
  if (drawn < 7 && recent.length > 0) return `transferHash=${recent[randomInt(recent.length)]}`;
  if (drawn < 9) return `transferId=${ids[randomInt(ids.length)]}`;
  return `transferHash=0x${randomBytes(32).toString("hex")}`;
}

interface StreamEvent {
  readonly event: string;
  readonly id: string;
  readonly data: string;
}

interface OpenedStream {
  readonly status: number;
  readonly body: Readable;
  readonly openedAt: number;
  close(): void;
}

/** Opens a stream. Returns why there is none if the connection ends without a response. */
function openStream(url: string, path: string, token: string, isHttp2: boolean): Promise<OpenedStream | string> {
  const headers = token === "" ? {} : { "last-event-id": token };
  const openedAt = performance.now();
  return new Promise((resolve) => {
    if (!isHttp2) {
      const request = get(`${url}${path}`, { agent: false, headers }, (response: IncomingMessage) => {
        const { statusCode = 0 } = response;
        resolve({ status: statusCode, body: response, openedAt, close: () => response.destroy() });
      });
      request.on("error", (error) => resolve(error.message));
      return;
    }
    const session: ClientHttp2Session = connectHttp2(url);
    const fail = (reason: string): void => {
      session.destroy();
      resolve(reason);
    };
    session.on("error", (error) => fail(error.message));
    const stream = session.request({ ":path": path, ...headers });
    stream.on("error", (error) => fail(error.message));
    stream.on("close", () => fail(`closed with ${stream.rstCode}`));
    stream.on("response", ({ ":status": status = 0 }) =>
      resolve({ status, body: stream, openedAt, close: () => session.destroy() }),
    );
  });
}

type Ending = "left" | "complete" | "cut" | "silent";

/** Reads events until the stream ends, falls silent, or the watcher leaves after a time. */
function readEvents(
  body: Readable,
  durationMs: number,
  onEvent: (event: StreamEvent) => void,
  state: SoakState,
): Promise<Ending> {
  return new Promise((resolve) => {
    let text = "";
    let ending: Ending = "cut";
    let heardAt = performance.now();
    const leaveAt = heardAt + durationMs;
    const timer = setInterval(() => {
      const now = performance.now();
      if (now - heardAt > MAX_SILENCE_MS) finish("silent");
      else if (now > leaveAt || state.isOver) finish("left");
    }, 500);
    function finish(given: Ending): void {
      clearInterval(timer);
      resolve(given);
    }
    body.setEncoding("utf8");
    body.on("error", () => finish(ending));
    body.on("close", () => finish(ending));
    body.on("data", (chunk: string) => {
      heardAt = performance.now();
      text += chunk;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const fields = new Map(
          text
            .slice(0, end)
            .split("\n")
            .map((line) => line.split(/: (.*)/, 2) as [string, string]),
        );
        text = text.slice(end + 2);
        const event = fields.get("event");
        if (event === undefined) continue;
        if (event === "end") ending = "complete";
        onEvent({ event, id: fields.get("id") ?? "", data: fields.get("data") ?? "{}" });
      }
    });
  });
}
