import { utils } from "ethers";

const abi = new utils.Interface([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) view returns ((bool success, bytes returnData)[])",
  "function getTokenBalance(uint8 index) view returns (uint256)",
  "function getAPrecise() view returns (uint256)",
  "function swapStorage() view returns (uint256, uint256, uint256, uint256, uint256, uint256, uint256, address)",
  "function getBlockNumber() view returns (uint256)",
  "function arbBlockNumber() view returns (uint256)",
  "function getCurrentBlockTimestamp() view returns (uint256)",
]);

const ZERO_WORD = `0x${"0".repeat(64)}`;
const POOL_BALANCE = 10n ** 13n;
const A_PRECISE = 20_000;
/** Of the pool's swap fee, in units of 10^-10. */
const SWAP_FEE = 400_000;

/** Returns the result of a contract call: pools have balances, every other value is 0. */
export function callContract({ data }: { readonly data: string }, head: number): string {
  const selector = data.slice(0, 10);
  const name = Object.values(abi.functions).find((candidate) => abi.getSighash(candidate) === selector)?.name;
  const encode = (...values: unknown[]): string => abi.encodeFunctionResult(name ?? "", values);
  switch (name) {
    case "aggregate3": {
      const { calls } = abi.decodeFunctionData(name, data);
      return encode(
        (calls as { callData: string }[]).map(({ callData }) => [true, callContract({ data: callData }, head)]),
      );
    }
    case "getTokenBalance":
      return encode(POOL_BALANCE);
    case "getAPrecise":
      return encode(A_PRECISE);
    case "swapStorage":
      return encode(0, 0, 0, 0, SWAP_FEE, 0, 0, `0x${"0".repeat(40)}`);
    case "getBlockNumber":
    case "arbBlockNumber":
      return encode(head);
    case "getCurrentBlockTimestamp":
      return encode(Math.floor(Date.now() / 1_000));
    default:
      return ZERO_WORD;
  }
}
