import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { utils } from "ethers";
import { expect, test } from "vitest";
import { sampleMessage } from "../../../../src/hop/cctp/cctp.js";
import { findChain, networkOf } from "../../../../src/hop/networks.js";
import { usdcSwapOn } from "../../../../src/hop/usdc-swap-pools.js";

const sdkFolder = createRequire(import.meta.url)
  .resolve("@hop-protocol/sdk")
  .replace(/dist.*/, "dist/esm/");

test("the messages by which deliveries are estimated are those inside the SDK", () => {
  const source = readFileSync(`${sdkFolder}HopBridge.js`, "utf8");
  const inside = [...source.matchAll(/^\s+(\w+): '(0x[0-9a-f]{500,})'/gm)];
  expect(inside.map(([, slug]) => slug).sort()).toEqual(["arbitrum", "base", "ethereum", "optimism", "polygon"]);
  for (const [, slug = "", encoded = ""] of inside) {
    const [bytes] = utils.defaultAbiCoder.decode(["bytes"], encoded);
    expect(sampleMessage(slug)).toEqual({ bytes, hash: utils.keccak256(bytes) });
  }
  expect(sampleMessage("gnosis")).toBeUndefined();
});

test("USDC.e is swapped where the SDK swaps it, between the tokens of the address book", () => {
  const mainnet = networkOf("mainnet");
  for (const slug of mainnet.chains.keys()) {
    const swap = usdcSwapOn(slug);
    const isSwapped =
      findChain(mainnet, slug)?.isL1 === false && mainnet.contracts.get("USDC")?.get(slug)?.cctpL2Bridge;
    expect(swap !== undefined, slug).toBe(Boolean(isSwapped));
    if (swap === undefined) continue;
    const lower = (token: string): string =>
      String(mainnet.contracts.get(token)?.get(slug)?.l2CanonicalToken).toLowerCase();
    expect([swap.bridged.toLowerCase(), swap.native.toLowerCase()], slug).toEqual([lower("USDC.e"), lower("USDC")]);
  }
});
