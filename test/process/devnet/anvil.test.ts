import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import ts from "typescript";
import { afterEach, describe, expect, it, vi } from "vitest";
import { findProjectFolder } from "../../../devnet/cache/project-folders.js";
import { type Anvil, startAnvil } from "../../../devnet/chain/anvil.js";
import { toHexQuantity } from "../../../devnet/chain/json-rpc.js";
import { getGasPrice } from "../../../devnet/chain/local-chains.js";
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
