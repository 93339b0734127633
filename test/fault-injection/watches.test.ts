import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectChains, type LocalChain } from "../../devnet/chain/local-chains.js";
import { type LocalNetwork, startLocalNetwork } from "../../devnet/network.js";
import { deliverTransfer } from "../../devnet/transfer/deliver-transfer.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { fundAndSend } from "../support/service/local-transfers.js";
import { nextState, openWatch } from "../support/service/watch-client.js";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.js";
import { type FaultName, faults } from "./faults.js";

// Watches while the only endpoints of their chains fail: a known state stays, and a new watch waits or is told an older
// state. Both get the new state when the chains answer again. The network is the test's own: its many transfers would make
// those of other tests final.

const SOURCE = "polygon";
const DESTINATION = "arbitrum";
/** Longer than a poll. */
const FAULT_MS = 3_000;

const proxies: FaultProxy[] = [];
let network: LocalNetwork;
let chains: ReadonlyMap<string, LocalChain>;
let gateway: TestGateway;

beforeAll(async () => {
  network = await startLocalNetwork();
  chains = connectChains(network.chains);
  const environment: Record<string, string> = { ...network.environment };
  for (const slug of [SOURCE, DESTINATION]) {
    const otherChainUrl = network.chains.gnosis?.url;
    const proxy = await startFaultProxy(network.chains[slug]?.url ?? "", otherChainUrl ? { otherChainUrl } : {});
    proxies.push(proxy);
    environment[`RPC_URL_${slug.toUpperCase()}`] = proxy.url;
  }
  gateway = await startGateway(environment);
});
afterAll(async () => {
  await gateway.stop();
  for (const proxy of proxies) await proxy.close();
  await network.stop();
});

const send = () => fundAndSend(chains, SOURCE, DESTINATION);

/** One fault of each kind in the short form. */
const SHORT_FORM: readonly FaultName[] = [
  ...(["connection reset", "half of the JSON", "another chain", "lagging head", "block number going back"] as const),
];
const names = process.env.TEST_EFFORT === "full" ? (Object.keys(faults) as FaultName[]) : SHORT_FORM;

test.each(names)("%s: no wrong state, and the right one when it ends", async (name) => {
  const { transactionHash, transfer } = await send();
  const other = await send();
  const watch = await openWatch(gateway.url, `transferHash=${transactionHash}`);
  expect(await nextState(watch)).toMatchObject({ event: "transfer", data: { state: "PENDING" } });
  for (const proxy of proxies) await proxy.setFault(faults[name]);
  await deliverTransfer(chains, transfer);
  await deliverTransfer(chains, other.transfer);
  // It responds with its first message.
  const opening = openWatch(gateway.url, `transferHash=${other.transactionHash}`);
  await sleep(FAULT_MS);
  for (const proxy of proxies) await proxy.setFault(undefined);
  expect(await nextState(watch)).toMatchObject({ event: "transfer", data: { state: "BONDED" } });
  watch.close();
  const newWatch = await opening;
  const states: unknown[] = [];
  while (states.at(-1) !== "BONDED") {
    const event = await nextState(newWatch);
    expect(["transfer", "unknown"]).toContain(event?.event);
    states.push(event?.data.state ?? "unknown");
  }
  newWatch.close();
  expect(states.slice(0, -1).filter((state) => state !== "PENDING" && state !== "unknown")).toEqual([]);
});
