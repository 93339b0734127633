import * as sdk from "@hop-protocol/sdk/contracts";
import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import { compileContracts } from "../../../../devnet/cache/compile-contracts.js";

/** A local contract, the interface of the deployed one in the SDK, and the functions that only the local one has. */
const PAIRS: readonly (readonly [
  name: string,
  deployed: { createInterface(): utils.Interface },
  localOnly: readonly string[],
])[] = [
  ["StableSwap", sdk.Swap__factory, ["initialize", "owner", "rampA"]],
  ["AmmWrapper", sdk.L2_AmmWrapper__factory, ["initialize"]],
  ["L1Bridge", sdk.L1_ERC20_Bridge__factory, ["initialize", "messenger"]],
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

const artifacts = compileContracts();

describe.each(PAIRS)("%s", (name, deployed, localOnly) => {
  const local = new utils.Interface((artifacts[name]?.abi ?? []) as string[]);

  test("declares functions and events like the deployed contract, including indexed and return types", () => {
    const expected = new Set(formatAll(deployed.createInterface()));
    const shared = local.fragments.filter((fragment) => !localOnly.includes(fragment.name) && isNamed(fragment));
    expect(shared.length).toBeGreaterThan(0);
    expect(shared.map(format).filter((text) => !expected.has(text))).toEqual([]);
  });
});

function formatAll(abi: utils.Interface): string[] {
  return abi.fragments.filter(isNamed).map(format);
}

function format(fragment: utils.Fragment): string {
  return fragment.format(utils.FormatTypes.minimal);
}

/** Returns whether a fragment is an event or a named function; `receive` and constructors have no name. */
function isNamed(fragment: utils.Fragment): boolean {
  return fragment.type === "event" || (fragment.type === "function" && fragment.name !== null);
}
