import type { TestProject } from "vitest/node";
import { type Network, startNetwork } from "../../devnet/network.js";

/** What tests get of the local network that runs while they run: `inject("network")`. */
export type SharedNetwork = Pick<Network, "chains" | "assetsUrl" | "attestationUrl" | "transfers" | "environment">;

declare module "vitest" {
  interface ProvidedContext {
    network: SharedNetwork;
  }
}

let network: Network | undefined;

/** Vitest's globalSetup: one network for the whole run. Its bonder rests, so that what is pending stays pending. */
export async function setup(project: TestProject): Promise<void> {
  network = await startNetwork({ log: (line) => process.stdout.write(`local network: ${line}\n`) });
  const { chains, assetsUrl, attestationUrl, transfers, environment } = network;
  project.provide("network", { chains, assetsUrl, attestationUrl, transfers, environment });
}

export async function teardown(): Promise<void> {
  await network?.stop();
}
