import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript";
import { afterEach, describe, expect, it, vi } from "vitest";
import { findProjectFolder } from "../../../devnet/cache/project-folders.js";
import { openSavedState, saveChainState } from "../../../devnet/cache/saved-state.js";
import { type Anvil, startAnvil } from "../../../devnet/chain/anvil.js";
import { toHexQuantity } from "../../../devnet/chain/json-rpc.js";
import { getContract, getGasPrice, getLocalChain, type LocalChains } from "../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../devnet/chain/tokens.js";
import { deployChain } from "../../../devnet/deploy/deploy-chain.js";
import { sendTransfer } from "../../../devnet/transfer/send-transfer.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

const GAS_PRICE = getGasPrice("optimism");

describe("a local chain", () => {
  const folder = useTemporaryFolder();
  const running: Anvil[] = [];
  const start = async (options: Parameters<typeof startAnvil>[0]): Promise<Anvil> => {
    const anvil = await startAnvil(options);
    running.push(anvil);
    return anvil;
  };
  afterEach(async () => {
    for (const anvil of running.splice(0)) await anvil.stop();
  });

  it("keeps the gas price constant across blocks", async () => {
    const { rpc } = await start({ chainId: 10, gasPrice: GAS_PRICE });
    const [account] = (await rpc("eth_accounts")) as string[];
    const fees = { maxFeePerGas: toHexQuantity(2n * GAS_PRICE), maxPriorityFeePerGas: "0x0" };
    for (let sent = 0; sent < 3; sent += 1) {
      const transaction = { from: account, to: account, value: "0x1", ...fees };
      const receipt = (await rpc("eth_sendTransactionSync", [transaction])) as { effectiveGasPrice: string };
      expect(BigInt(receipt.effectiveGasPrice)).toBe(GAS_PRICE);
      await expect.poll(async () => BigInt((await rpc("eth_gasPrice")) as string), { interval: 2 }).toBe(GAS_PRICE);
    }
  });

  it("restores blocks, receipts, logs and timestamps from a saved state and continues with the current time", async () => {
    const timestamp = Math.floor(Date.now() / 1_000) - 100_000;
    const first = await start({ chainId: 10, gasPrice: GAS_PRICE, timestamp });
    const chains = toLocalChains(first);
    await deployChain({ slug: "optimism", rpc: first.rpc });
    await first.rpc("evm_setNextBlockTimestamp", [timestamp + 50_000]);
    await sendHop(chains);
    const history = await readHistory(first);
    expect(history.logs.length).toBeGreaterThan(0);
    expect(history.blocks.at(-1)?.timestamp).toBeGreaterThanOrEqual(timestamp + 50_000);
    await saveChainState(join(folder(), "state"), chains, []);
    await first.stop();

    const state = await openSavedState(join(folder(), "state"));
    const second = await start({ chainId: 10, gasPrice: GAS_PRICE, stateFile: state?.chainFile("optimism") ?? "" });
    expect(await readHistory(second)).toEqual(history);
    expect(BigInt((await second.rpc("eth_gasPrice")) as string)).toBe(GAS_PRICE);
    // The contracts continue: the next transfer has the next nonce, and its block has the current time.
    await sendHop(toLocalChains(second));
    const { blocks, logs } = await readHistory(second);
    expect(logs.length).toBeGreaterThan(history.logs.length);
    expect(Math.abs((blocks.at(-1)?.timestamp ?? 0) - Date.now() / 1_000)).toBeLessThan(30);
  });

  it("reports the node's error when it does not start", async () => {
    await expect(
      startAnvil({ chainId: 1, gasPrice: GAS_PRICE, stateFile: join(folder(), "none.json") }),
    ).rejects.toThrow(/none/);
  });

  it("reports that anvil could not be started without a shell", async () => {
    vi.stubEnv("PATH", folder());
    try {
      await expect(startAnvil({ chainId: 1, gasPrice: GAS_PRICE })).rejects.toThrow("anvil could not be started");
    } finally {
      vi.unstubAllEnvs();
    }
  });

  it("stops, and ignores a second stop", async () => {
    const anvil = await start({ chainId: 1, gasPrice: GAS_PRICE });
    await anvil.stop();
    await anvil.stop();
    await expect(anvil.rpc("eth_chainId")).rejects.toThrow();
  });
});

describe("a local chain whose parent is killed", () => {
  // Inside the project's folder, so that imports of packages resolve.
  const folder = useTemporaryFolder(join(findProjectFolder(), "node_modules"));

  it("exits", async () => {
    for (const name of ["anvil", "json-rpc"]) {
      const source = await readFile(join(findProjectFolder(), "devnet/chain", `${name}.ts`), "utf8");
      const options = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
      const { outputText } = ts.transpileModule(source, { compilerOptions: options });
      await writeFile(join(folder(), `${name}.js`), outputText);
    }
    await writeFile(join(folder(), "package.json"), '{"type":"module"}');
    const module = pathToFileURL(join(folder(), "anvil.js")).href;
    const script = `const { startAnvil } = await import(${JSON.stringify(module)});
      console.log((await startAnvil({ chainId: 1, gasPrice: 1n })).url);
      setInterval(() => {}, 1000);`;
    const parent = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const [output] = (await once(parent.stdout, "data")) as [Buffer];
      const url = output.toString().trim();
      const isAlive = (): Promise<boolean> =>
        fetch(url).then(
          () => true,
          () => false,
        );
      expect(await isAlive()).toBe(true);
      parent.kill("SIGKILL");
      await expect.poll(isAlive).toBe(false);
    } finally {
      parent.kill("SIGKILL");
    }
  });
});

function toLocalChains({ chainId, rpc }: Anvil): LocalChains {
  return new Map([["optimism", { slug: "optimism", chainId, rpc }]]);
}

async function sendHop(chains: LocalChains): Promise<void> {
  const [account = ""] = (await getLocalChain(chains, "optimism").rpc("eth_accounts")) as string[];
  const amount = 10n ** 20n;
  await fundAccount(chains, "optimism", "HOP", account, amount);
  const route = { token: "HOP", source: "optimism", destination: "arbitrum", from: account, recipient: account };
  const noLimits = { amountOutMin: 0n, deadline: 0, destinationAmountOutMin: 0n, destinationDeadline: 0 };
  const { logs } = await sendTransfer(chains, { ...route, amount, bonderFee: amount / 10n, ...noLimits });
  const bridge = getContract("HOP", "optimism", "l2Bridge").toLowerCase();
  expect(logs.some((log) => log.address.toLowerCase() === bridge)).toBe(true);
}

/** Reads all blocks, receipts and logs of a chain. */
async function readHistory({ rpc }: Anvil) {
  const head = Number(await rpc("eth_blockNumber"));
  const blocks: { number: number; hash: string; timestamp: number }[] = [];
  const receipts: unknown[] = [];
  for (let number = 0; number <= head; number += 1) {
    const block = (await rpc("eth_getBlockByNumber", [toHexQuantity(number), false])) as {
      hash: string;
      timestamp: string;
      transactions: string[];
    };
    blocks.push({ number, hash: block.hash, timestamp: Number(block.timestamp) });
    for (const hash of block.transactions) receipts.push(await rpc("eth_getTransactionReceipt", [hash]));
  }
  const logs = (await rpc("eth_getLogs", [{ fromBlock: "earliest", toBlock: "latest" }])) as unknown[];
  return { blocks, receipts, logs };
}
