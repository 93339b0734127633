import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { beforeAll, expect, test, vi } from "vitest";
import { getBonder } from "../../../devnet/chain/local-chains.js";
import { deliverTransfer } from "../../../devnet/transfer/deliver-transfer.js";
import { BridgeService, GetTransferStatusResponse_State } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { useGateway } from "../../support/service/in-process-gateway.js";
import { waitUntilIndexed } from "../../support/service/index-coverage.js";
import { fundAndSend } from "../../support/service/local-transfers.js";
import { useOwnNetwork } from "../../support/service/own-network.js";
import { nextState, openWatch as openWatchAt } from "../../support/service/watch-client.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Watches over an index: transfers are sent and delivered on the local chains while they are watched. The network is of its
// own, so that the account has no other transfers than those sent here.

const folder = useTemporaryFolder();
const account = getBonder("HOP", "polygon", "arbitrum").toLowerCase();

const { network, chains } = useOwnNetwork();
const gateway = useGateway(() => ({
  ...network.environment,
  INDEX: `sqlite:${join(folder(), "index")}`,
  INDEX_FROM: "2020-01-01",
}));
beforeAll(() => waitUntilIndexed(gateway, network.chains));

const send = () => fundAndSend(chains, "polygon", "arbitrum");

/** Reads events up to and with the bookmark that follows the present states. */
async function readPresentStates(watch: Awaited<ReturnType<typeof openWatchAt>>) {
  for (;;) {
    const event = await watch.next();
    if (event === undefined || event.event === "bookmark") return event;
  }
}

test("an account is told of a new transfer, its delivery, and after a reconnect of what came meanwhile", async () => {
  const watch = await openWatchAt(gateway.url, `account=${account}`);
  expect(await readPresentStates(watch)).toMatchObject({ event: "bookmark" });
  const { transfer, transactionHash } = await send();
  const data = { transactionHash, accountAddress: account };
  const pending = await nextState(watch);
  expect(pending).toMatchObject({ event: "transfer", data: { ...data, state: "PENDING" } });
  watch.close();
  await deliverTransfer(chains, transfer);
  const resumed = await openWatchAt(gateway.url, `account=${account}`, pending?.id);
  expect(await nextState(resumed)).toMatchObject({ event: "transfer", data: { ...data, state: "BONDED" } });
  resumed.close();
});

test("gRPC tells the same", async () => {
  const client = createClient(BridgeService, createGrpcTransport({ baseUrl: gateway.url }));
  const closing = new AbortController();
  const messages = client.watchTransfers({ account }, { signal: closing.signal })[Symbol.asyncIterator]();
  for (let isBookmark = false; !isBookmark; ) isBookmark = (await messages.next()).value?.event.case === "bookmark";
  const { transactionHash } = await send();
  const { value } = await messages.next();
  expect(value?.event).toMatchObject({
    case: "transfer",
    value: { transactionHash, state: GetTransferStatusResponse_State.PENDING },
  });
  closing.abort();
});

test.each(["transferHash", "transferId"])("with an index, a watch by %s is told of the delivery", async (name) => {
  const { transfer, transactionHash } = await send();
  const { body } = await vi.waitFor(
    async () => {
      const found = await gateway.get(`/v1/transfer-status?transferHash=${transactionHash}`);
      expect(found.status).toBe(200);
      return found;
    },
    { timeout: 60_000 },
  );
  const id = name === "transferHash" ? transactionHash : String((body as { transferId: string }).transferId);
  const watch = await openWatchAt(gateway.url, `${name}=${id}`);
  expect(await nextState(watch)).toMatchObject({ event: "transfer", data: { state: "PENDING" } });
  await deliverTransfer(chains, transfer);
  expect(await nextState(watch)).toMatchObject({ event: "transfer", data: { state: "BONDED" } });
  watch.close();
});

test("refuses an account together with transfers, and the token of another account", async () => {
  const other = `0x${"ab".repeat(20)}`;
  const watch = await openWatchAt(gateway.url, `account=${other}`);
  const bookmark = await readPresentStates(watch);
  watch.close();
  for (const [query, field] of [
    [`account=${account}&transferHash=0x${"ab".repeat(32)}`, "account"],
    [`account=${account}&resumeToken=${bookmark?.id}`, "resumeToken"],
  ]) {
    const { status, body } = await gateway.get(`/v1/transfers:watch?${query}`);
    expect([status, body]).toMatchObject([400, { reason: "INVALID_PARAMETER", field }]);
  }
});
