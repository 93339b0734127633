import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { type LocalNetwork, startLocalNetwork } from "../../../devnet/network.js";
import { writeContractReport } from "../contract/contract-report.js";
import { findPlantedKeysInFolder } from "./planted-keys.js";

/** What tests get of the local network that runs while they run: `inject("network")`. */
export type SharedNetwork = Pick<LocalNetwork, "chains" | "assetsUrl" | "attestationUrl" | "transfers" | "environment">;

declare module "vitest" {
  interface ProvidedContext {
    network: SharedNetwork;
  }
}

let network: LocalNetwork | undefined;
let outputFolder: string | undefined;
let projectName = "";

/** Vitest's globalSetup: one network for the whole run. Its bonder rests, so that what is pending stays pending. */
export async function setup(project: TestProject): Promise<void> {
  outputFolder = await mkdtemp(join(tmpdir(), "hop-gateway-output-"));
  projectName = project.name;
  project.provide("outputFolder", outputFolder);
  network = await startLocalNetwork({ log: (line) => process.stdout.write(`local network: ${line}\n`) });
  const { chains, assetsUrl, attestationUrl, transfers, environment } = network;
  project.provide("network", { chains, assetsUrl, attestationUrl, transfers, environment });
}

/**
 * Ends the network, and the run in failure where anything that the tests made say something told a planted key, or a
 * process of its own answered otherwise than gen/openapi.json says.
 */
export async function teardown(): Promise<void> {
  await network?.stop();
  if (outputFolder === undefined) return;
  const leaks = await findPlantedKeysInFolder(outputFolder);
  const problems = writeContractReport(outputFolder, projectName);
  await rm(outputFolder, { recursive: true, force: true });
  const said = [
    ...(leaks.length === 0 ? [] : ["planted keys were told:", ...leaks.slice(0, 20)]),
    ...new Set(problems.slice(0, 20)),
  ];
  if (said.length === 0) return;
  // Vitest only prints what a teardown throws.
  process.exitCode = 1;
  throw new Error(said.join("\n"));
}
