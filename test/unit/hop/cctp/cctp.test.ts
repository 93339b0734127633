import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { utils } from "ethers";
import { expect, test } from "vitest";
import { buildSampleCctpMessage } from "../../../../src/hop/cctp/cctp.js";
import { findChain, getNetwork } from "../../../../src/hop/networks.js";
import { findUsdcSwapPool } from "../../../../src/hop/usdc-swap-pools.js";

const sdkFolder = createRequire(import.meta.url)
  .resolve("@hop-protocol/sdk")
  .replace(/dist.*/, "dist/esm/");

test("the sample messages equal those inside the SDK", () => {
  const source = readFileSync(`${sdkFolder}HopBridge.js`, "utf8");
  const sdkMessages = [...source.matchAll(/^\s+(\w+): '(0x[0-9a-f]{500,})'/gm)];
  expect(sdkMessages.map(([, slug]) => slug).sort()).toEqual(["arbitrum", "base", "ethereum", "optimism", "polygon"]);
  for (const [, slug = "", encoded = ""] of sdkMessages) {
    const [bytes] = utils.defaultAbiCoder.decode(["bytes"], encoded);
    expect(buildSampleCctpMessage(slug)).toEqual({ bytes, hash: utils.keccak256(bytes) });
  }
  expect(buildSampleCctpMessage("gnosis")).toBeUndefined();
});

test("USDC.e is swapped on the same chains as in the SDK, between the tokens of its address book", () => {
  const mainnet = getNetwork("mainnet");
  for (const slug of mainnet.chains.keys()) {
    const swap = findUsdcSwapPool(slug);
    const isSwapped =
      findChain(mainnet, slug)?.isL1 === false && mainnet.contracts.get("USDC")?.get(slug)?.cctpL2Bridge;
    expect(swap !== undefined, slug).toBe(Boolean(isSwapped));
    if (swap === undefined) continue;
    const lower = (token: string): string =>
      String(mainnet.contracts.get(token)?.get(slug)?.l2CanonicalToken).toLowerCase();
    expect([swap.bridgedUsdc.toLowerCase(), swap.nativeUsdc.toLowerCase()], slug).toEqual([
      lower("USDC.e"),
      lower("USDC"),
    ]);
  }
});
