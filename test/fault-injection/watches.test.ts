import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { deliverTransfer } from "../../devnet/transfer/deliver-transfer.js";
import { isFullEffort } from "../support/effort.js";
import { useGateway } from "../support/service/in-process-gateway.js";
import { fundAndSend } from "../support/service/local-transfers.js";
import { useOwnNetwork } from "../support/service/own-network.js";
import { nextState, openWatch } from "../support/service/watch-client.js";
import { toRpcEnvironment } from "../support/stubs/rpc-proxy.js";
import { type FaultProxy, startFaultProxy } from "./fault-proxy.js";
import { type FaultName, faults } from "./faults.js";

// Watches while the only endpoints of their chains fail: a known state stays, and a new watch waits or is told an older
// state. Both get the new state when the chains answer again. The network is the test's own: its many transfers would make
// those of other tests final.

const SOURCE = "polygon";
const DESTINATION = "arbitrum";
/** Longer than a poll. */
const FAULT_MS = 3_000;

const { network, chains } = useOwnNetwork();
const proxies = new Map<string, FaultProxy>();
beforeAll(async () => {
  const getUrl = (slug: string): string => network.chains[slug]?.url ?? "";
  for (const slug of [SOURCE, DESTINATION])
    proxies.set(slug, await startFaultProxy(getUrl(slug), { otherChainUrl: getUrl("gnosis") }));
});
afterAll(async () => {
  for (const proxy of proxies.values()) await proxy.close();
});
const gateway = useGateway(() => ({ ...network.environment, ...toRpcEnvironment(proxies) }));

const send = () => fundAndSend(chains, SOURCE, DESTINATION);

/** One fault of each kind in the short form. */
const SHORT_FORM: readonly FaultName[] = [
  ...(["connection reset", "half of the JSON", "another chain", "lagging head", "block number going back"] as const),
];
const names = isFullEffort ? (Object.keys(faults) as FaultName[]) : SHORT_FORM;

test.each(names)("%s: no wrong state, and the right one when it ends", async (name) => {
  const { transactionHash, transfer } = await send();
  const other = await send();
  const watch = await openWatch(gateway.url, `transferHash=${transactionHash}`);
  expect(await nextState(watch)).toMatchObject({ event: "transfer", data: { state: "PENDING" } });
  for (const proxy of proxies.values()) await proxy.setFault(faults[name]);
  await deliverTransfer(chains, transfer);
  await deliverTransfer(chains, other.transfer);
  // It responds with its first message.
  const opening = openWatch(gateway.url, `transferHash=${other.transactionHash}`);
  await sleep(FAULT_MS);
  for (const proxy of proxies.values()) await proxy.setFault(undefined);
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
