import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectChains, getLocalChain, type LocalChains } from "../../../devnet/chain/local-chains.js";
import { type LocalNetwork, startLocalNetwork } from "../../../devnet/network.js";
import { deliverTransfer } from "../../../devnet/transfer/deliver-transfer.js";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";
import { fundAndSend, fundSender, mineBlocks, sendFunded } from "../../support/service/local-transfers.js";
import { nextState, openWatch as openWatchAt } from "../../support/service/watch-client.js";

// Watches over Server-Sent Events: transfers are sent and delivered on the local chains while they are watched. The network
// is of its own, because blocks become final and are taken back.

let network: LocalNetwork;
let chains: LocalChains;
let gateway: TestGateway;
beforeAll(async () => {
  network = await startLocalNetwork();
  chains = connectChains(network.chains);
  gateway = await startGateway(network.environment);
});
afterAll(async () => {
  await gateway?.stop();
  await network?.stop();
});

const openWatch = (query: string, lastEventId?: string) => openWatchAt(gateway.url, query, lastEventId);

const fund = (source: string, destination: string) => fundSender(chains, source, destination);
const send = (source: string, destination: string) => fundAndSend(chains, source, destination);
const mine = (slug: string, blocks: number) => mineBlocks(chains, slug, blocks);

describe("a watch", () => {
  test("of a pending transfer gets the delivery, and ends when both blocks are final", async () => {
    const { transactionHash, transfer } = await send("polygon", "arbitrum");
    const watch = await openWatch(`transferHash=${transactionHash}&fromChain=polygon`);
    expect(watch.response.headers.get("content-type")).toBe("text/event-stream");
    expect(await nextState(watch)).toMatchObject({ event: "transfer", data: { state: "PENDING" } });
    await deliverTransfer(chains, transfer);
    const delivered = await nextState(watch);
    expect(delivered).toMatchObject({ event: "transfer", data: { state: "BONDED" } });
    await Promise.all([mine("polygon", 70), mine("arbitrum", 70)]);
    const end = await nextState(watch);
    expect(end).toMatchObject({ event: "end" });
    expect(await watch.next()).toBeUndefined();

    const again = await openWatch(`transferHash=${transactionHash}`, end?.id);
    expect(again.status).toBe(204);
    const fromStart = await openWatch(`transferHash=${transactionHash}`);
    expect(await nextState(fromStart)).toMatchObject({ event: "transfer", data: { state: "BONDED" } });
    expect(await nextState(fromStart)).toMatchObject({ event: "end" });
  });

  test("that is resumed gets only what has changed since", async () => {
    const { transactionHash, transfer } = await send("arbitrum", "polygon");
    const first = await openWatch(`transferHash=${transactionHash}`);
    const pending = await nextState(first);
    first.close();
    await deliverTransfer(chains, transfer);
    const second = await openWatch(`transferHash=${transactionHash}`, pending?.id);
    expect(await nextState(second)).toMatchObject({ event: "transfer", data: { state: "BONDED" } });
    second.close();
  });

  test("of a transaction that nobody knows yet gets it as soon as it is mined", async () => {
    const polygon = getLocalChain(chains, "polygon");
    await fund("polygon", "arbitrum");
    const snapshot = await polygon.rpc("evm_snapshot");
    const { transactionHash: hash } = await sendFunded(chains, "polygon", "arbitrum");
    await polygon.rpc("evm_revert", [snapshot]);
    await mine("polygon", 3);
    const watch = await openWatch(`transferHash=${hash}`);
    expect(await nextState(watch)).toMatchObject({ event: "unknown", data: { isFinal: false } });
    // With the same nonce it is the same transaction.
    expect((await sendFunded(chains, "polygon", "arbitrum")).transactionHash).toBe(hash);
    expect(await nextState(watch)).toMatchObject({ event: "transfer", data: { state: "PENDING" } });
    watch.close();
  });

  test("goes back to the older state when a reorg removes the delivery", async () => {
    const { transactionHash, transfer } = await send("polygon", "optimism");
    const optimism = getLocalChain(chains, "optimism");
    const snapshot = await optimism.rpc("evm_snapshot");
    await deliverTransfer(chains, transfer);
    const watch = await openWatch(`transferHash=${transactionHash}`);
    expect(await nextState(watch)).toMatchObject({ data: { state: "BONDED" } });
    await optimism.rpc("evm_revert", [snapshot]);
    await mine("optimism", 3);
    expect(await nextState(watch)).toMatchObject({ event: "transfer", data: { state: "PENDING" } });
    await deliverTransfer(chains, transfer);
    expect(await nextState(watch)).toMatchObject({ event: "transfer", data: { state: "BONDED" } });
    watch.close();
  });

  test("of the view FULL tells the details", async () => {
    const { transactionHash } = await send("polygon", "arbitrum");
    const watch = await openWatch(`transferHash=${transactionHash}&view=FULL`);
    expect(await nextState(watch)).toMatchObject({ data: { details: { substate: "WAITING_FOR_BONDER" } } });
    watch.close();
  });
});

test.each([
  ["", "MISSING_PARAMETER", "transferId"],
  ["transferHash=0x12", "INVALID_PARAMETER", "transferHash"],
  [`transferHash=0x${"ab".repeat(32)}&resumeToken=AQ`, "INVALID_PARAMETER", "resumeToken"],
  [`account=0x${"ab".repeat(20)}`, "INDEX_REQUIRED", undefined],
])("refuses %s with %s", async (query, reason, field) => {
  const { status, body } = await gateway.get(`/v1/transfers:watch?${query}`);
  expect([status, body]).toMatchObject([400, { reason, ...(field && { field }) }]);
});
