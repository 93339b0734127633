import { utils } from "ethers";
import type { Artifact } from "../cache/compile-contracts.js";
import type { Rpc } from "../chain/json-rpc.js";
import { deployer } from "./accounts.js";

/** One of our contracts at an address, and what it is told first. */
export interface Placement {
  /** Name in the compiled artifacts. */
  readonly contract: string;
  readonly address: string;
  /** Call made once after placing. */
  readonly setUp?: { readonly method: string; readonly values: readonly unknown[] };
  /** Coins that lie in the contract, wei. */
  readonly balance?: bigint;
}

export interface ContractCall {
  readonly to: string;
  readonly data: string;
}

/** Small enough that a batch of set-ups stays under the gas that one transaction may use on any chain. */
const callsPerTransaction = 20;
const gas = utils.hexValue(16_000_000);
/** Wei: above any price of gas. */
const maxFeePerGas = utils.hexValue(10n ** 13n);

/** Puts the runtime code of every placement at its address, with its coins. */
export async function placeCode(
  rpc: Rpc,
  artifacts: Readonly<Record<string, Artifact>>,
  placements: readonly Placement[],
): Promise<void> {
  const placing = placements.map(async ({ contract, address, balance }) => {
    await rpc("anvil_setCode", [address, artifactOf(artifacts, contract).deployedBytecode]);
    if (balance !== undefined) await rpc("anvil_setBalance", [address, utils.hexValue(balance)]);
  });
  await Promise.all(placing);
}

/** The calls that the placements ask for, in their order. */
export function setUpCalls(
  artifacts: Readonly<Record<string, Artifact>>,
  placements: readonly Placement[],
): readonly ContractCall[] {
  return placements.flatMap(({ contract, address, setUp }) =>
    setUp === undefined
      ? []
      : [{ to: address, data: encodeCall(artifactOf(artifacts, contract), setUp.method, setUp.values) }],
  );
}

/**
 * Makes calls in few transactions, through the multicall contract, which is therefore the sender that the called
 * contracts see.
 *
 * @throws Error when a call reverts.
 */
export async function makeCalls(
  rpc: Rpc,
  multicall: string,
  artifact: Artifact,
  calls: readonly ContractCall[],
): Promise<void> {
  for (let start = 0; start < calls.length; start += callsPerTransaction) {
    const batch = calls.slice(start, start + callsPerTransaction);
    const data = encodeCall(artifact, "aggregate3", [batch.map((call) => [call.to, false, call.data])]);
    // The fees that the node would fill in are no use: its tip is above the whole gas price of some chains, and a price of
    // the moment may be too low for the next block, which then leaves the transaction waiting for ever.
    const transaction = { from: deployer, to: multicall, data, gas, maxFeePerGas, maxPriorityFeePerGas: "0x0" };
    const receipt = (await rpc("eth_sendTransactionSync", [transaction])) as { status: string };
    if (receipt.status === "0x1") continue;
    throw new Error(`a call to one of these reverted: ${batch.map(({ to }) => to).join(", ")}`);
  }
}

export function artifactOf(artifacts: Readonly<Record<string, Artifact>>, contract: string): Artifact {
  const artifact = artifacts[contract];
  if (artifact === undefined) throw new Error(`there is no contract ${contract}`);
  return artifact;
}

function encodeCall(artifact: Artifact, method: string, values: readonly unknown[]): string {
  return new utils.Interface(artifact.abi as string[]).encodeFunctionData(method, values);
}
