import { decodeUintAt } from "../../chain/abi/abi-encoding.js";
import type { RpcCallResult } from "../../chain/chain-client.js";
import { hexToBytes } from "../../chain/hex.js";
import { ServiceError } from "../../errors.js";

/** Selector of the error with which `require` reverts: Error(string). */
const ERROR_SELECTOR = "0x08c379a0";
/** A contract chooses its words, and a node may add some. */
const MAX_LENGTH = 120;

/**
 * Returns the words with which a contract refused a call; undefined: the call succeeded.
 * @throws ServiceError UPSTREAM_UNAVAILABLE when the node has not run the call to its end
 */
export function findRefusal(outcome: RpcCallResult | undefined, slug: string): string | undefined {
  if (outcome === undefined) throw new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} did not run the call`);
  if (!("revert" in outcome)) return undefined;
  const { message } = outcome.revert;
  const nodeData = outcome.revert.data ?? "";
  // Nethermind has put its own words there: "Reverted 0x...", or "OutOfGas".
  const data = /0x[0-9a-f]*$/.exec(nodeData.toLowerCase())?.[0] ?? "0x";
  if (data === "0x" && !/revert/i.test(`${message} ${nodeData}`))
    throw new ServiceError("UPSTREAM_UNAVAILABLE", `${slug} did not run the call to its end`);
  // Where a contract has answered, the node's own words are not the contract's.
  const words =
    data === "0x" ? message.replace(/^.*?reverted(?: with reason string)?:? ?/i, "") : (decodeReason(data) ?? "");
  const printable = words.replace(/[^\x20-\x7e]/g, "?").replaceAll('"', "'");
  return printable === "" ? `no reason (${data.slice(0, 10)})` : printable.slice(0, MAX_LENGTH);
}

function decodeReason(data: string): string | undefined {
  if (!data.startsWith(ERROR_SELECTOR)) return undefined;
  const body = `0x${data.slice(ERROR_SELECTOR.length)}`;
  const length = decodeUintAt(body, 1);
  if (length === undefined || length > BigInt(body.length / 2)) return undefined;
  return hexToBytes(`0x${body.slice(2 + 128, 2 + 128 + Number(length) * 2)}`).toString("utf8");
}
