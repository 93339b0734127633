import { afterAll, beforeAll, expect, test } from "vitest";
import { connectChains, getLocalChain, type LocalChains } from "../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../devnet/chain/tokens.js";
import { type LocalNetwork, startLocalNetwork } from "../../../devnet/network.js";
import { commitTransfers, deliverTransfer, setTransferRoot } from "../../../devnet/transfer/deliver-transfer.js";
import { sendTransfer } from "../../../devnet/transfer/send-transfer.js";
import { parseSentTransfers } from "../../../devnet/transfer/sent-transfer.js";
import { startGateway, type TestGateway } from "../../support/service/in-process-gateway.js";

// A transfer that no bonder pays, from its sending on. Uses its own local network, because it sends transactions.

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

const rpc = (slug: string, method: string, params: unknown[] = []): Promise<unknown> =>
  getLocalChain(chains, slug).rpc(method, params);

test("the substate follows commit, reorg, arrival of the root and payment", async () => {
  const [from = ""] = (await rpc("optimism", "eth_accounts")) as string[];
  const amount = 25_000_000n;
  await fundAccount(chains, "optimism", "USDT", from, amount);
  const deadline = Math.floor(Date.now() / 1000) + 3_600;
  const { transactionHash, logs } = await sendTransfer(chains, {
    ...{ token: "USDT", source: "optimism", destination: "polygon", from, recipient: from, amount },
    ...{ bonderFee: 600_000n, amountOutMin: 24_000_000n, deadline },
    ...{ destinationAmountOutMin: 23_000_000n, destinationDeadline: deadline },
  });
  const [sent] = parseSentTransfers("optimism", logs);
  if (sent === undefined) throw new Error("the transaction sent no transfer");
  const read = async (): Promise<Record<string, unknown>> => {
    const { body } = await gateway.get(`/v1/transfer-status?transferHash=${transactionHash}&view=FULL`);
    return (body as { details: Record<string, unknown> }).details;
  };
  // A status, and its details with it, are kept for about a block.
  const expectSubstate = (substate: string): Promise<void> =>
    expect.poll(async () => (await read())?.substate).toBe(substate);

  await expectSubstate("WAITING_FOR_BONDER");

  const beforeCommit = await rpc("optimism", "evm_snapshot");
  await commitTransfers(chains, sent, from);
  await expectSubstate("WAITING_FOR_SETTLEMENT");
  await rpc("optimism", "evm_revert", [beforeCommit]);
  await expectSubstate("WAITING_FOR_BONDER");

  const root = await commitTransfers(chains, sent, from);
  await expectSubstate("WAITING_FOR_SETTLEMENT");
  await setTransferRoot(chains, sent, root);
  await expectSubstate("WITHDRAWABLE");

  await deliverTransfer(chains, sent);
  await expectSubstate("RECEIVED");
  expect(await read()).toMatchObject({ receivedToken: "USDT", receivedAmount: expect.stringMatching(/^2[34]\d{6}$/) });
});
