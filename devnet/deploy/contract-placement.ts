import { utils } from "ethers";
import type { ContractArtifact } from "../cache/compile-contracts.js";
import type { JsonRpc } from "../chain/json-rpc.js";
import { deployer } from "./accounts.js";

/** One of our contracts, its address, and its initialization. */
export interface ContractPlacement {
  /** Name in the compiled artifacts. */
  readonly contract: string;
  readonly address: string;
  /** Call made once after placement. */
  readonly initializer?: { readonly method: string; readonly values: readonly unknown[] };
  /** Native balance of the contract, wei. */
  readonly balance?: bigint;
}

export interface ContractCall {
  readonly to: string;
  readonly data: string;
}

/** Keeps a batch of initializations below the gas limit of a transaction on every chain. */
const CALLS_PER_TRANSACTION = 20;
const gasLimit = utils.hexValue(16_000_000);
/** Wei; above any gas price here. */
const maxFeePerGas = utils.hexValue(10n ** 13n);

/** Places the runtime code and the balance of every placement at its address. */
export async function setContractCode(
  rpc: JsonRpc,
  artifacts: Readonly<Record<string, ContractArtifact>>,
  placements: readonly ContractPlacement[],
): Promise<void> {
  const placing = placements.map(async ({ contract, address, balance }) => {
    await rpc("anvil_setCode", [address, getArtifact(artifacts, contract).deployedBytecode]);
    if (balance !== undefined) await rpc("anvil_setBalance", [address, utils.hexValue(balance)]);
  });
  await Promise.all(placing);
}

/** Returns the initializer calls of the placements, in order. */
export function encodeInitializerCalls(
  artifacts: Readonly<Record<string, ContractArtifact>>,
  placements: readonly ContractPlacement[],
): readonly ContractCall[] {
  return placements.flatMap(({ contract, address, initializer }) =>
    initializer === undefined
      ? []
      : [{ to: address, data: encodeCall(getArtifact(artifacts, contract), initializer.method, initializer.values) }],
  );
}

/**
 * Makes calls in few transactions through the multicall contract, which is therefore `msg.sender` of the calls.
 * @throws Error when a call reverts
 */
export async function sendCallsInBatches(
  rpc: JsonRpc,
  multicall: string,
  artifact: ContractArtifact,
  calls: readonly ContractCall[],
): Promise<void> {
  for (let start = 0; start < calls.length; start += CALLS_PER_TRANSACTION) {
    const batch = calls.slice(start, start + CALLS_PER_TRANSACTION);
    const data = encodeCall(artifact, "aggregate3", [batch.map((call) => [call.to, false, call.data])]);
    // Explicit fees: the node's default priority fee exceeds the gas price of some chains, and a current price may be too low
    // for the next block, so that the transaction would never be mined.
    const transaction = {
      from: deployer,
      to: multicall,
      data,
      gas: gasLimit,
      maxFeePerGas,
      maxPriorityFeePerGas: "0x0",
    };
    const receipt = (await rpc("eth_sendTransactionSync", [transaction])) as { status: string };
    if (receipt.status === "0x1") continue;
    throw new Error(`a call to one of these reverted: ${batch.map(({ to }) => to).join(", ")}`);
  }
}

export function getArtifact(artifacts: Readonly<Record<string, ContractArtifact>>, contract: string): ContractArtifact {
  const artifact = artifacts[contract];
  if (artifact === undefined) throw new Error(`unknown contract ${contract}`);
  return artifact;
}

function encodeCall(artifact: ContractArtifact, method: string, values: readonly unknown[]): string {
  return new utils.Interface(artifact.abi as string[]).encodeFunctionData(method, values);
}
