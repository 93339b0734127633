import { readdir } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { l2BridgeAbi, messageTransmitterAbi } from "../../../devnet/chain/abi.js";
import { connectChains, getContract, getLocalChain, type LocalChains } from "../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../devnet/chain/tokens.js";
import { callContract, type TransactionReceipt } from "../../../devnet/chain/transactions.js";
import { type LocalNetwork, startLocalNetwork } from "../../../devnet/network.js";
import { sendTransfer } from "../../../devnet/transfer/send-transfer.js";
import { parseSentTransfers, type SentTransfer } from "../../../devnet/transfer/sent-transfer.js";
import { loadConfig } from "../../../src/config/config.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

const slugs = ["ethereum", "optimism", "arbitrum"];
const HOUR = 3_600;

describe("the local network", () => {
  const folder = useTemporaryFolder();
  const logLines: string[] = [];
  let network: LocalNetwork;
  let chains: LocalChains;

  let other: LocalNetwork;

  beforeAll(async () => {
    const log = (line: string): void => void logLines.push(line);
    const start = () => startLocalNetwork({ slugs, stateDir: folder(), bondDelaySeconds: 1, log });
    [network, other] = await Promise.all([start(), start()]);
    await other.stop();
    chains = connectChains(network.chains);
  });
  afterAll(() => network.stop());

  it("runs the chains with their real chain IDs", async () => {
    const ids = slugs.map(async (slug) => Number(await getLocalChain(chains, slug).rpc("eth_chainId")));
    expect(await Promise.all(ids)).toEqual([1, 10, 42161]);
  });

  it("provides local endpoints for every chain of every network", () => {
    const urls = Object.entries(network.environment).filter(([name]) => name.includes("RPC_URL_"));
    const chainSlugs = (["mainnet", "goerli"] as const).flatMap((slug) => [...getNetwork(slug).chains.keys()]);
    expect(urls).toHaveLength(chainSlugs.length);
    for (const [, url] of urls) expect(new URL(url).hostname).toBe("127.0.0.1");
    const { rpcUrls } = loadConfig(network.environment);
    expect(rpcUrls.mainnet.get("optimism")).toEqual([network.chains.optimism?.url]);
    expect(new Set([...rpcUrls.goerli.values(), rpcUrls.mainnet.get("base")].flat())).toEqual(
      new Set(["http://127.0.0.1:1"]),
    );
  });

  it("has transfers of hours to days ago, and one of more than eight weeks", async () => {
    const times = await Promise.all(network.transfers.map((transfer) => readSendTime(transfer)));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    // Governance can empty a root after eight weeks.
    const ages = times.map((time) => Date.now() / 1_000 - time);
    expect(ages[0]).toBeGreaterThan(8 * 7 * 24 * HOUR);
    expect(ages[1]).toBeGreaterThan(60 * HOUR);
    expect(ages[1]).toBeLessThan(80 * HOUR);
  });

  it("bonds a new pending transfer and leaves the seeded pending ones pending", async () => {
    const sent = await send("USDT", "optimism", "arbitrum", 25_000_000n);
    expect(await isSpent(sent)).toBe(false);
    network.bonder.start();
    await expect.poll(() => isSpent(sent)).toBe(true);
    await network.bonder.stop();

    const pending = network.transfers.find(({ name }) => name === "hop-batch-second");
    const [, second] = await parseTransfers("optimism", pending?.transactionHash ?? "");
    expect(second && (await isSpent(second))).toBe(false);
  });

  it("deliverPending delivers transfers of every kind once", async () => {
    const [toL1, fromL1, cctp] = [
      await send("ETH", "arbitrum", "ethereum", 10n ** 18n),
      await send("DAI", "ethereum", "optimism", 10n ** 20n),
      await send("USDC", "ethereum", "arbitrum", 50_000_000n),
    ];
    const before = await countDeliveries();
    await network.bonder.deliverPending();
    expect(await isSpent(toL1)).toBe(true);
    const after = await countDeliveries();
    expect(after.optimism - before.optimism).toBe(1);
    expect(after.arbitrum - before.arbitrum).toBe(1);
    expect([fromL1.kind, cctp.kind]).toEqual(["from-l1", "cctp"]);
    // Nothing is left to deliver. A second delivery would revert and be logged.
    const linesBefore = logLines.length;
    await network.bonder.deliverPending();
    expect(logLines.slice(linesBefore)).toEqual([]);
    expect(await countDeliveries()).toEqual(after);
  });

  it("reads the message of a CCTP transfer only from Circle's contract", async () => {
    const cctp = network.transfers.find(({ kind, expectedState }) => kind === "cctp" && expectedState === "PENDING");
    const { logs } = await readReceipt(cctp?.sourceSlug ?? "", cctp?.transactionHash ?? "");
    const topic = messageTransmitterAbi.getEventTopic("MessageSent");
    const sentLog = logs.find((log) => log.topics[0] === topic);
    const data = messageTransmitterAbi.encodeEventLog(messageTransmitterAbi.getEvent("MessageSent"), ["0x1234"]).data;
    const foreignLog = { address: `0x${"c0".repeat(20)}`, topics: [topic], data };
    const [sent] = parseSentTransfers(cctp?.sourceSlug ?? "", [foreignLog, ...logs]);
    const message = messageTransmitterAbi.decodeEventLog("MessageSent", sentLog?.data ?? "0x").message;
    expect(sent).toMatchObject({ kind: "cctp", message });
  });

  it("restarts with the same transfers from its saved state", async () => {
    const savedFiles = await readdir(folder());
    const lines: string[] = [];
    const restarted = await startLocalNetwork({ slugs, stateDir: folder(), log: (line) => lines.push(line) });
    try {
      expect(lines).toEqual([]);
      expect(restarted.transfers).toEqual(network.transfers);
      expect(await readdir(folder())).toEqual(savedFiles);
      const restartedChains = connectChains(restarted.chains);
      for (const { sourceSlug, transactionHash } of network.transfers) {
        const [receipt, restartedReceipt] = await Promise.all(
          [chains, restartedChains].map((set) =>
            getLocalChain(set, sourceSlug).rpc("eth_getTransactionReceipt", [transactionHash]),
          ),
        );
        expect(restartedReceipt).not.toBeNull();
        expect(restartedReceipt).toEqual(receipt);
      }
    } finally {
      await restarted.stop();
    }
    for (const { url } of Object.values(restarted.chains)) await expect(fetch(url)).rejects.toThrow();
    await expect(fetch(restarted.assetsUrl)).rejects.toThrow();
  });

  it("can be built twice at the same time", async () => {
    expect(await readdir(folder())).toHaveLength(1);
    expect(other.transfers).toEqual(network.transfers);
  });

  async function parseTransfers(slug: string, hash: string): Promise<readonly SentTransfer[]> {
    return parseSentTransfers(slug, (await readReceipt(slug, hash)).logs);
  }

  async function readReceipt(slug: string, hash: string): Promise<TransactionReceipt> {
    return (await getLocalChain(chains, slug).rpc("eth_getTransactionReceipt", [hash])) as TransactionReceipt;
  }

  async function readSendTime({ sourceSlug, transactionHash }: LocalNetwork["transfers"][number]): Promise<number> {
    const { rpc } = getLocalChain(chains, sourceSlug);
    const { blockHash } = (await rpc("eth_getTransactionReceipt", [transactionHash])) as { blockHash: string };
    const { timestamp } = (await rpc("eth_getBlockByHash", [blockHash, false])) as { timestamp: string };
    return Number(timestamp);
  }

  async function isSpent(transfer: SentTransfer): Promise<boolean> {
    if (transfer.kind !== "from-l2") throw new Error(`a transfer ${transfer.kind} has no id on its destination`);
    const { token, destination, transferId } = transfer;
    const bridge = getContract(token, destination, destination === "ethereum" ? "l1Bridge" : "l2Bridge");
    const data = l2BridgeAbi.encodeFunctionData("isTransferIdSpent", [transferId]);
    return BigInt(await callContract(getLocalChain(chains, destination), bridge, data)) === 1n;
  }

  /** Counts the deposits that arrived on optimism and the CCTP messages that arrived on arbitrum. */
  async function countDeliveries(): Promise<{ optimism: number; arbitrum: number }> {
    const count = async (slug: string, address: string, topic: string): Promise<number> => {
      const filter = { address, fromBlock: "earliest", toBlock: "latest", topics: [topic] };
      return ((await getLocalChain(chains, slug).rpc("eth_getLogs", [filter])) as unknown[]).length;
    };
    const completed = "0x320958176930804eb66c2343c7343fc0367dc16249590c0f195783bee199d094";
    const received = "0x58200b4c34ae05ee816d710053fff3fb75af4395915d3d2a771b24aa10e3cc5d";
    return {
      optimism: await count("optimism", getContract("DAI", "optimism", "l2Bridge"), completed),
      arbitrum: await count("arbitrum", getContract("USDC", "arbitrum", "cctpMessageTransmitter"), received),
    };
  }

  async function send(token: string, source: string, destination: string, amount: bigint): Promise<SentTransfer> {
    const [, , , sender = ""] = (await getLocalChain(chains, source).rpc("eth_accounts")) as string[];
    await fundAccount(chains, source, token, sender, amount);
    const deadline = Math.floor(Date.now() / 1_000) + HOUR;
    const toL1 = destination === "ethereum";
    const { logs } = await sendTransfer(chains, {
      token,
      source,
      destination,
      from: sender,
      recipient: sender,
      amount,
      bonderFee: source === "ethereum" ? 0n : amount / 50n,
      amountOutMin: (amount * 9n) / 10n,
      deadline,
      destinationAmountOutMin: toL1 ? 0n : (amount * 8n) / 10n,
      destinationDeadline: toL1 ? 0 : deadline,
    });
    const [transfer] = parseSentTransfers(source, logs);
    if (transfer === undefined) throw new Error("nothing was sent");
    return transfer;
  }
});
