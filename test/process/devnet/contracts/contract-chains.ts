import * as sdk from "@hop-protocol/sdk/contracts";
import { utils } from "ethers";
import { expect } from "vitest";
import { type Anvil, startAnvil } from "../../../../devnet/chain/anvil.js";
import { getChainId, getGasPrice } from "../../../../devnet/chain/local-chains.js";
import {
  type EventLog,
  sendTransaction,
  type TransactionReceipt,
  type TransactionRequest,
} from "../../../../devnet/chain/transactions.js";
import { deployChain } from "../../../../devnet/deploy/deploy-chain.js";

export type TestChain = Anvil & { readonly slug: string };

/** Local chains with only Hop's contracts, for the tests of one file. */
export interface TestChains<Slug extends string> {
  readonly bySlug: ReadonlyMap<string, TestChain>;
  start(): Promise<void>;
  stop(): Promise<unknown>;
  on(slug: Slug): TestChain;
  send(slug: Slug, call: TransactionRequest): Promise<TransactionReceipt>;
  /** Estimates a call's gas: rejects with the reason of a revert. */
  estimate(slug: Slug, from: string, to: string, data: string, value?: bigint): Promise<unknown>;
  /** Calls a function that returns one word. */
  read(slug: Slug, to: string, abi: utils.Interface, name: string, values: readonly unknown[]): Promise<bigint>;
  approve(slug: Slug, owner: string, token: string, spender: string): Promise<void>;
  tokens(slug: Slug, token: string, account: string): Promise<bigint>;
}

const l2Bridge = sdk.L2_Bridge__factory.createInterface();
const erc20 = sdk.HopBridgeToken__factory.createInterface();

/** @param timestamp Time of the first blocks, Unix seconds; default: now. */
export function createTestChains<Slug extends string>(slugs: readonly Slug[], timestamp?: number): TestChains<Slug> {
  const bySlug = new Map<string, TestChain>();
  const on = (slug: Slug): TestChain => {
    const chain = bySlug.get(slug);
    if (chain === undefined) throw new Error(`${slug} is not running`);
    return chain;
  };
  const send = (slug: Slug, call: TransactionRequest): Promise<TransactionReceipt> => sendTransaction(on(slug), call);
  const read: TestChains<Slug>["read"] = async (slug, to, abi, name, values) => {
    const data = abi.encodeFunctionData(name, values);
    return BigInt((await on(slug).rpc("eth_call", [{ to, data }, "latest"])) as string);
  };
  return {
    bySlug,
    async start() {
      const start = async (slug: Slug): Promise<void> => {
        const clock = timestamp === undefined ? {} : { timestamp };
        const anvil = await startAnvil({ chainId: getChainId(slug), gasPrice: getGasPrice(slug), ...clock });
        bySlug.set(slug, { ...anvil, slug });
        await deployChain({ slug, rpc: anvil.rpc });
      };
      await Promise.all(slugs.map(start));
    },
    stop: () => Promise.all([...bySlug.values()].map((chain) => chain.stop())),
    on,
    send,
    estimate: (slug, from, to, data, value = 0n) =>
      on(slug).rpc("eth_estimateGas", [{ from, to, data, value: utils.hexValue(value) }]),
    read,
    async approve(slug, owner, token, spender) {
      const data = erc20.encodeFunctionData("approve", [spender, 2n ** 255n]);
      await send(slug, { from: owner, to: token, data });
    },
    tokens: (slug, token, account) => read(slug, token, erc20, "balanceOf", [account]),
  };
}

/** Decodes an event. The topics are copied because ethers requires a mutable array. */
export function parseLog(abi: utils.Interface, log: EventLog | undefined): utils.LogDescription {
  if (log === undefined) throw new Error("the log is missing");
  return abi.parseLog({ topics: [...log.topics], data: log.data });
}

/**
 * Returns the TransferSent event of a receipt. Its nonce must be that of the bridge's transfer number `count`, and its ID
 * the hash of the other values.
 */
export function expectTransferId(receipt: TransactionReceipt, slug: string, count: number): utils.Result {
  const { args } = parseLog(l2Bridge, receipt.logs.at(-1));
  const nonce = utils.solidityKeccak256(
    ["bytes32", "uint256", "uint256"],
    [utils.id("L2_Bridge v1.0"), getChainId(slug), count],
  );
  expect(args.transferNonce).toBe(nonce);
  const types = ["uint256", "address", "uint256", "bytes32", "uint256", "uint256", "uint256"];
  const values = [args.chainId, args.recipient, args.amount, nonce, args.bonderFee, args.amountOutMin, args.deadline];
  expect(args.transferId).toBe(utils.keccak256(utils.defaultAbiCoder.encode(types, values)));
  return args;
}
