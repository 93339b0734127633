import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { utils } from "ethers";
import { expect, test } from "vitest";
import { buildSampleCctpMessage, decodeBurnMessage, findUsdcSwapPool } from "../../../src/hop/cctp.js";
import { findChain, getNetwork } from "../../../src/hop/networks.js";
import { toLog } from "../../support/stubs/transfer-fixtures.js";

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

test("the message of a burn is decoded from MessageSent", () => {
  const message = buildSampleCctpMessage("arbitrum");
  const bytes = message?.bytes ?? "0x";
  const topics = [utils.id("MessageSent(bytes)")];
  const decode = (sent: string, topic = topics) =>
    decodeBurnMessage(
      toLog(
        {
          ...{ address: `0x${"b1".repeat(20)}`, topics: topic, transactionHash: utils.id("burn") },
          data: utils.defaultAbiCoder.encode(["bytes"], [sent]),
        },
        1,
      ),
    );
  const sender = "0x9997da3de3ec197c853bcc96caecf08a81de9d69";
  expect(decode(bytes)).toEqual({
    ...{ bytes, hash: message?.hash, sourceDomain: 7, destinationDomain: 3, nonce: 0xbe6fn },
    ...{ mintRecipient: sender, amount: 10_000n, burner: sender },
  });
  expect(decode(bytes.slice(0, -2))).toBeUndefined();
  expect(decode(`${bytes}00`)).toBeUndefined();
  expect(decode(`0x00000001${bytes.slice(10)}`)).toBeUndefined();
  expect(decode(bytes, [utils.id("MessageReceived(bytes)")])).toBeUndefined();
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
