import * as sdk from "@hop-protocol/sdk/contracts";
import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import { compileContracts } from "../../../../devnet/cache/compile-contracts.js";

/** Our contract, the real one's interface in the SDK, and the functions that only ours has. */
const pairs: readonly (readonly [
  ours: string,
  real: { createInterface(): utils.Interface },
  own: readonly string[],
])[] = [
  ["StableSwap", sdk.Swap__factory, ["initialize", "owner", "rampA"]],
  ["AmmWrapper", sdk.L2_AmmWrapper__factory, ["initialize"]],
  ["L1Bridge", sdk.L1_ERC20_Bridge__factory, ["initialize", "messenger", "setTransferRoot"]],
  ["L2Bridge", sdk.L2_Bridge__factory, ["initialize", "messenger"]],
  ["Token", sdk.HopBridgeToken__factory, ["initialize", "isMinter"]],
  ["WrappedNative", sdk.WETH9__factory, ["initialize"]],
  ["Multicall3", sdk.Multicall3__factory, []],
  ["MessageTransmitter", sdk.CCTPMessageTransmitter__factory, ["initialize"]],
  ["TokenMessenger", sdk.CCTPTokenMessenger__factory, ["initialize"]],
  ["TokenMinter", sdk.CCTPTokenMinter__factory, ["initialize"]],
  ["L1HopCctp", sdk.L1_HopCCTPImplementation__factory, ["initialize"]],
  ["L2HopCctp", sdk.L2_HopCCTPImplementation__factory, ["initialize", "initializeL2"]],
];

/** What the SDK, a status reader or a sender calls or looks for, beside what the names above already hold to. */
const needed: Readonly<Record<string, readonly string[]>> = {
  StableSwap: ["calculateSwap", "swap", "getA", "getAPrecise", "getVirtualPrice", "swapStorage", "getTokenBalance"],
  AmmWrapper: ["swapAndSend", "attemptSwap"],
  L1Bridge: ["sendToL2", "bondWithdrawal", "withdraw", "isChainIdPaused", "isTransferIdSpent", "getCredit"],
  L2Bridge: ["send", "bondWithdrawal", "bondWithdrawalAndDistribute", "distribute", "withdraw", "minBonderFeeAbsolute"],
  Multicall3: ["aggregate", "aggregate3", "tryAggregate", "getBasefee", "getBlockNumber", "getEthBalance"],
  MessageTransmitter: ["receiveMessage", "usedNonces", "localDomain"],
  TokenMessenger: ["localMinter", "depositForBurn"],
  TokenMinter: ["burnLimitsPerMessage"],
  L1HopCctp: ["send", "minBonderFee", "nativeToken", "cctp"],
  L2HopCctp: ["send", "swapAndSend", "minBonderFee", "nativeToken", "cctp"],
};

const artifacts = compileContracts();

describe.each(pairs)("%s", (name, real, own) => {
  const ours = new utils.Interface((artifacts[name]?.abi ?? []) as string[]);

  test("every function and event is the real one's: name, types, what is indexed, what is returned", () => {
    const theirs = new Set(shapes(real.createInterface()));
    const shared = ours.fragments.filter((fragment) => !own.includes(fragment.name) && callable(fragment));
    expect(shared.length).toBeGreaterThan(0);
    expect(shared.map(shape).filter((text) => !theirs.has(text))).toEqual([]);
  });

  test("it has what is called", () => {
    const names = ours.fragments.map((fragment) => fragment.name);
    expect(names).toEqual(expect.arrayContaining([...(needed[name] ?? []), ...own]));
  });
});

function shapes(abi: utils.Interface): string[] {
  return abi.fragments.filter(callable).map(shape);
}

function shape(fragment: utils.Fragment): string {
  return fragment.format(utils.FormatTypes.minimal);
}

/** `receive` and constructors have no name. */
function callable(fragment: utils.Fragment): boolean {
  return fragment.type === "event" || (fragment.type === "function" && fragment.name !== null);
}
