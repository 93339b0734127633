import { describe, expect, test } from "vitest";
import { getLocalChain } from "../../../devnet/chain/local-chains.js";
import { deliverTransfer } from "../../../devnet/transfer/deliver-transfer.js";
import { useGateway } from "../../support/service/in-process-gateway.js";
import { fundAndSend, fundSender, mineBlocks, sendFunded } from "../../support/service/local-transfers.js";
import { useOwnNetwork } from "../../support/service/own-network.js";
import { nextState, openWatch as openWatchAt } from "../../support/service/watch-client.js";

// Watches over Server-Sent Events: transfers are sent and delivered on the local chains while they are watched. The network
// is of its own, because blocks become final and are taken back.

const { network, chains } = useOwnNetwork();
const gateway = useGateway(() => network.environment);

const openWatch = (query: string, lastEventId?: string) => openWatchAt(gateway.url, query, lastEventId);
const fund = (source: string, destination: string) => fundSender(chains, source, destination);
const send = (source: string, destination: string) => fundAndSend(chains, source, destination);
const mine = (slug: string, blocks: number) => mineBlocks(chains, slug, blocks);

describe("a watch", () => {
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
