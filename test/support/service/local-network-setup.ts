import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TestProject } from "vitest/node";
import { connectChains, getGasPrice } from "../../../devnet/chain/local-chains.js";
import { type LocalNetwork, startLocalNetwork } from "../../../devnet/network.js";
import { writeContractReport } from "../contract/contract-report.js";
import { findPlantedKeysInFolder } from "./planted-keys.js";

/** The part of the local network that tests get by `inject("network")`. */
export type SharedNetwork = Pick<LocalNetwork, "chains" | "assetsUrl" | "attestationUrl" | "transfers" | "environment">;

declare module "vitest" {
  interface ProvidedContext {
    network: SharedNetwork;
  }
}

const OLDER_BLOCKS = 3;

let network: LocalNetwork | undefined;
let outputFolder: string | undefined;
let projectName = "";

/** Vitest's globalSetup: starts one network for the whole run. Its bonder is off, so that pending transfers stay so. */
export async function setup(project: TestProject): Promise<void> {
  outputFolder = await mkdtemp(join(tmpdir(), "hop-gateway-output-"));
  projectName = project.name;
  project.provide("outputFolder", outputFolder);
  network = await startLocalNetwork({ log: (line) => process.stdout.write(`local network: ${line}\n`) });
  await mineOlderBlocks(network);
  const { chains, assetsUrl, attestationUrl, transfers, environment } = network;
  project.provide("network", { chains, assetsUrl, attestationUrl, transfers, environment });
}

/**
 * Mines some blocks: a node has no state of those before its start, and a lagging node in a test needs it. Before the
 * tests, and not in one of them: each block lowers the gas price, and so the quotes of the others, until it is set again.
 */
async function mineOlderBlocks({ chains }: LocalNetwork): Promise<void> {
  const mining = [...connectChains(chains)].map(async ([slug, { rpc }]) => {
    for (let mined = 0; mined < OLDER_BLOCKS; mined++) await rpc("evm_mine");
    while (BigInt(String(await rpc("eth_gasPrice"))) !== getGasPrice(slug)) await sleep(20);
  });
  await Promise.all(mining);
}

/**
 * Stops the network. Fails the run if any output contains a planted key, or if a response of a child process deviates
 * from gen/openapi.json.
 */
export async function teardown(): Promise<void> {
  await network?.stop();
  if (outputFolder === undefined) return;
  const leaks = await findPlantedKeysInFolder(outputFolder);
  const problems = writeContractReport(outputFolder, projectName);
  await rm(outputFolder, { recursive: true, force: true });
  const failures = [
    ...(leaks.length === 0 ? [] : ["planted keys were leaked:", ...leaks.slice(0, 20)]),
    ...new Set(problems.slice(0, 20)),
  ];
  if (failures.length === 0) return;
  // Vitest only prints errors of a teardown, so the exit code is set too.
  process.exitCode = 1;
  throw new Error(failures.join("\n"));
}
