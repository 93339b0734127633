import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { LocalChains } from "../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../devnet/chain/tokens.js";
import { type Bonder, createBonder } from "../../../devnet/transfer/bonder.js";
import { sendTransfer } from "../../../devnet/transfer/send-transfer.js";
import { createTestChains } from "./contracts/contract-chains.js";

const real = createTestChains(["optimism", "arbitrum"]);
const sender = "0x00000000000000000000000000000000000aA001";
const amount = 10n ** 20n;

describe("the bonder, when chains cannot be read", () => {
  /** Methods that get no answer, as `slug method`; `slug` alone: none does. */
  const failing = new Set<string>();
  const said: string[] = [];
  let chains: LocalChains;
  let bonder: Bonder;

  beforeAll(async () => {
    await real.start();
    const wrapped = [...real.bySlug.values()].map((chain) => ({
      ...chain,
      rpc: async (method: string, params?: readonly unknown[]): Promise<unknown> => {
        if (failing.has(chain.slug) || failing.has(`${chain.slug} ${method}`)) throw new Error("no answer");
        return chain.rpc(method, params);
      },
    }));
    chains = new Map(wrapped.map((chain) => [chain.slug, chain]));
  });
  afterAll(() => real.stop());
  beforeEach(async () => {
    said.length = 0;
    bonder = await createBonder({ chains, delaySeconds: 0, log: (line) => said.push(line) });
  });
  afterEach(async () => {
    failing.clear();
    await bonder.stop();
  });

  it("delivers from the others, and says so once, and once when it is over", async () => {
    failing.add("arbitrum eth_blockNumber");
    bonder.start();
    await expect.poll(() => said).toEqual(["arbitrum cannot be read: no answer"]);
    await sendHop("optimism", "arbitrum");
    await expect.poll(() => said.slice(1)).toEqual([delivered("optimism", "arbitrum")]);
    // More than another look, which has nothing new to tell.
    await sleep(1_500);
    expect(said).toHaveLength(2);
    failing.clear();
    await expect.poll(() => said.slice(2)).toEqual(["arbitrum can be read again"]);
  });

  it.each(["eth_getLogs", "eth_getTransactionReceipt"])("loses no transfer to a failed %s", async (method) => {
    await sendHop("optimism", "arbitrum");
    await sendHop("arbitrum", "optimism");
    failing.add(`optimism ${method}`);
    await expect(bonder.deliverPending()).rejects.toThrow("optimism cannot be read: no answer");
    expect(said).toHaveLength(2);
    expect(said).toContainEqual(delivered("arbitrum", "optimism"));
    failing.clear();
    await bonder.deliverPending();
    expect(said.slice(2)).toEqual(["optimism can be read again", delivered("optimism", "arbitrum")]);
  });

  function delivered(source: string, destination: string): unknown {
    return expect.stringMatching(new RegExp(`^delivered: HOP ${source} -> ${destination} 0x[0-9a-f]{64}$`));
  }

  async function sendHop(source: string, destination: string): Promise<void> {
    await fundAccount(chains, source, "HOP", sender, amount);
    const none = { amountOutMin: 0n, deadline: 0, destinationAmountOutMin: 0n, destinationDeadline: 0 };
    const route = { token: "HOP", source, destination, from: sender, recipient: sender };
    await sendTransfer(chains, { ...route, amount, bonderFee: amount / 10n, ...none });
  }
});
