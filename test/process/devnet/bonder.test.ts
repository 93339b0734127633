import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { LocalChains } from "../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../devnet/chain/tokens.js";
import { type Bonder, createBonder } from "../../../devnet/transfer/bonder.js";
import { sendTransfer } from "../../../devnet/transfer/send-transfer.js";
import { createTestChains } from "./contracts/contract-chains.js";

const testChains = createTestChains(["optimism", "arbitrum"]);
const sender = "0x00000000000000000000000000000000000aA001";
const amount = 10n ** 20n;

describe("the bonder while chains cannot be read", () => {
  /** RPC methods that fail, as `slug method`; `slug` alone stands for every method. */
  const failing = new Set<string>();
  const logLines: string[] = [];
  let chains: LocalChains;
  let bonder: Bonder;

  beforeAll(async () => {
    await testChains.start();
    const wrapped = [...testChains.bySlug.values()].map((chain) => ({
      ...chain,
      rpc: async (method: string, params?: readonly unknown[]): Promise<unknown> => {
        if (failing.has(chain.slug) || failing.has(`${chain.slug} ${method}`)) throw new Error("no answer");
        return chain.rpc(method, params);
      },
    }));
    chains = new Map(wrapped.map((chain) => [chain.slug, chain]));
  });
  afterAll(() => testChains.stop());
  beforeEach(async () => {
    logLines.length = 0;
    bonder = await createBonder({ chains, delaySeconds: 0, log: (line) => logLines.push(line) });
  });
  afterEach(async () => {
    failing.clear();
    await bonder.stop();
  });

  it("delivers from the other chains and logs the failure and the recovery once each", async () => {
    failing.add("arbitrum eth_blockNumber");
    bonder.start();
    await expect.poll(() => logLines).toEqual(["arbitrum cannot be read: no answer"]);
    await sendHop("optimism", "arbitrum");
    await expect.poll(() => logLines.slice(1)).toEqual([deliveryLine("optimism", "arbitrum")]);
    // Longer than a polling interval: the failure is not logged again.
    await sleep(1_500);
    expect(logLines).toHaveLength(2);
    failing.clear();
    await expect.poll(() => logLines.slice(2)).toEqual(["arbitrum can be read again"]);
  });

  it.each(["eth_getLogs", "eth_getTransactionReceipt"])("loses no transfer to a failed %s", async (method) => {
    await sendHop("optimism", "arbitrum");
    await sendHop("arbitrum", "optimism");
    failing.add(`optimism ${method}`);
    await expect(bonder.deliverPending()).rejects.toThrow("optimism cannot be read: no answer");
    expect(logLines).toHaveLength(2);
    expect(logLines).toContainEqual(deliveryLine("arbitrum", "optimism"));
    failing.clear();
    await bonder.deliverPending();
    expect(logLines.slice(2)).toEqual(["optimism can be read again", deliveryLine("optimism", "arbitrum")]);
  });

  function deliveryLine(source: string, destination: string): unknown {
    const hashes = "sent by 0x[0-9a-f]{64}, received by 0x[0-9a-f]{64}";
    return expect.stringMatching(new RegExp(`^delivered: HOP ${source} -> ${destination}, ${hashes}$`));
  }

  async function sendHop(source: string, destination: string): Promise<void> {
    await fundAccount(chains, source, "HOP", sender, amount);
    const noLimits = { amountOutMin: 0n, deadline: 0, destinationAmountOutMin: 0n, destinationDeadline: 0 };
    const route = { token: "HOP", source, destination, from: sender, recipient: sender };
    await sendTransfer(chains, { ...route, amount, bonderFee: amount / 10n, ...noLimits });
  }
});
