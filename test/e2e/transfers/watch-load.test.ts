import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { connectChains, type LocalChains } from "../../../devnet/chain/local-chains.js";
import { type LocalNetwork, startLocalNetwork } from "../../../devnet/network.js";
import { deliverTransfer } from "../../../devnet/transfer/deliver-transfer.js";
import { buildService } from "../../support/service/build-service.js";
import { fundAndSend } from "../../support/service/local-transfers.js";
import { type ServiceProcess, startServiceProcess } from "../../support/service/service-process.js";
import { nextState, openWatch, type WatchEvent } from "../../support/service/watch-client.js";

// Thousands of watches at the end of the service, and a watch whose caller does not read. Uses its own local network, because
// it sends transactions.

const ROUTE = ["gnosis", "arbitrum"] as const;
const HTTP1_WATCHES = 500;
const HTTP2_WATCHES = 4_500;
const STREAMS_PER_SESSION = 150;
const OPENED_AT_ONCE = 300;
/** Longer than a bookmark and the end of a response. */
const TAIL_LENGTH = 400;

let network: LocalNetwork;
let chains: LocalChains;
beforeAll(async () => {
  network = await startLocalNetwork();
  chains = connectChains(network.chains);
});
afterAll(() => network?.stop());

let service: ServiceProcess | undefined;
const sessions: ClientHttp2Session[] = [];
afterEach(() => {
  for (const session of sessions.splice(0)) session.destroy();
  if (service?.isRunning()) service.signal("SIGKILL");
});

async function start(): Promise<ServiceProcess> {
  service = await startServiceProcess(await buildService(), {
    ...network.environment,
    ...{ WATCH_MAX_PER_CALLER: "0", LOG_LEVEL: "warn" },
    // At the end of the service, time for all that is open: no verdict may depend on how busy the machine is.
    REQUEST_TIMEOUT_MS: "60000",
  });
  return service;
}

/** A watch of which only the end of what it received is kept. */
interface LoadWatch {
  readonly opened: Promise<void>;
  /** Resolves with the last event, as text. */
  readonly lastEvent: Promise<string>;
}

/** @param listen passes each chunk of the response on, and tells when it has ended */
function follow(listen: (onData: (chunk: string) => void, onEnd: () => void) => void): LoadWatch {
  let tail = "";
  let noteOpen = (): void => {};
  const opened = new Promise<void>((resolve) => {
    noteOpen = resolve;
  });
  const lastEvent = new Promise<string>((resolve) => {
    listen(
      (chunk) => {
        tail += chunk;
        if (tail.includes("\ndata: ")) noteOpen();
        tail = tail.slice(-TAIL_LENGTH);
      },
      () => resolve(/event: (\w+)\n(?!.*event: )/s.exec(tail)?.[1] ?? `no event in ${tail}`),
    );
  });
  return { opened, lastEvent };
}

function openHttp1({ port }: ServiceProcess, path: string): LoadWatch {
  const socket = connect(port, "127.0.0.1").setEncoding("latin1");
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  return follow((onData, onEnd) => void socket.on("data", onData).on("error", onEnd).on("close", onEnd));
}

function openHttp2({ url }: ServiceProcess, path: string, index: number): LoadWatch {
  const place = Math.floor(index / STREAMS_PER_SESSION);
  sessions[place] ??= connectHttp2(url).on("error", () => {});
  const stream = sessions[place].request({ ":path": path }).setEncoding("latin1");
  return follow((onData, onEnd) => void stream.on("data", onData).on("error", onEnd).on("close", onEnd));
}

test("at SIGTERM 5,000 watches end with a bookmark, and the service exits", async () => {
  const running = await start();
  const { transactionHash } = await fundAndSend(chains, ...ROUTE);
  const path = `/v1/transfers:watch?transferHash=${transactionHash}`;
  const watches: LoadWatch[] = [];
  while (watches.length < HTTP1_WATCHES + HTTP2_WATCHES) {
    const batch = Array.from({ length: OPENED_AT_ONCE }, (_, offset) => watches.length + offset)
      .filter((index) => index < HTTP1_WATCHES + HTTP2_WATCHES)
      .map((index) =>
        index < HTTP1_WATCHES ? openHttp1(running, path) : openHttp2(running, path, index - HTTP1_WATCHES),
      );
    watches.push(...batch);
    await Promise.all(batch.map(({ opened }) => opened));
  }
  const began = performance.now();
  running.signal("SIGTERM");
  const last = await Promise.all(watches.map(({ lastEvent }) => lastEvent));
  process.stdout.write(`${last.length} watches ended within ${Math.round(performance.now() - began)} ms\n`);
  expect(last.filter((event) => event !== "bookmark")).toEqual([]);
  expect(await running.exitCode).toBe(0);
});

test("a caller that does not read gets the newest states when it does, and others are not kept waiting", async () => {
  const { url } = await start();
  const sent = [];
  for (let count = 0; count < 8; count += 1) sent.push(await fundAndSend(chains, ...ROUTE));
  const query = `view=FULL&${sent.map(({ transactionHash }) => `transferHash=${transactionHash}`).join("&")}`;

  // The service may send 100 bytes until some are read.
  const session = connectHttp2(url, { settings: { initialWindowSize: 100 } });
  sessions.push(session);
  const unread = session.request({ ":path": `/v1/transfers:watch?${query}` }).setEncoding("utf8");
  const responded = new Promise((resolve) => unread.once("response", resolve));
  unread.pause();
  await responded;

  const other = await openWatch(url, query);
  const readStates = async () => {
    const states: (string | undefined)[] = [];
    while (states.length < sent.length) states.push((await nextState(other))?.data.state);
    return [...new Set(states)];
  };
  expect(await readStates()).toEqual(["PENDING"]);
  for (const { transfer } of sent) await deliverTransfer(chains, transfer);
  const told = new Set<string>();
  while (told.size < sent.length) {
    const event = await nextState(other);
    if (event?.data.state === "BONDED") told.add(event.data.transferId ?? "");
  }
  other.close();

  let text = "";
  unread.on("data", (chunk: string) => {
    text += chunk;
  });
  unread.resume();
  /** Returns the transfers of which a state was received. */
  const findAll = (state: string) => {
    const data = [...text.matchAll(/^data: (.*)\n\n/gm)];
    const events = data.map(([, json = "{}"]) => JSON.parse(json) as WatchEvent["data"]);
    return new Set(events.filter((event) => event.state === state).map(({ transferId }) => transferId));
  };
  await expect.poll(() => findAll("BONDED").size).toBe(sent.length);
  // Only what was sent before the limit of unread messages is old.
  expect(findAll("PENDING").size).toBeGreaterThan(0);
  expect(findAll("PENDING").size).toBeLessThan(sent.length);
});
