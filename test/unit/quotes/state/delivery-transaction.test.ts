import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import { buildSampleCctpMessage } from "../../../../src/hop/cctp.js";
import { getBuiltInFeeSettings } from "../../../../src/hop/fee-settings.js";
import { encodeDeliveryCalldata, getDeliveryKey } from "../../../../src/quotes/state/read-set.js";
import {
  buildBondTransaction,
  buildMintTransaction,
  computeDeliveryCost,
} from "../../../../src/quotes/state/route-plan.js";
import { addressOf, createChainState, findQuoteRoute } from "../../../support/stubs/quote-routes.js";

const abi = new utils.Interface([
  "function bondWithdrawal(address recipient, uint256 amount, bytes32 transferNonce, uint256 bonderFee)",
  "function bondWithdrawalAndDistribute(address recipient, uint256 amount, bytes32 transferNonce, uint256 bonderFee, uint256 amountOutMin, uint256 deadline)",
  "function receiveMessage(bytes message, bytes attestation)",
]);
/** The transfer of the SDK's populateBondWithdrawalTx. */
const SAMPLE_TRANSFER = [`0x${"11".repeat(20)}`, 10, `0x${"00".repeat(32)}`, 1];
const NOW = 1_800_000_000;
const SEVEN_DAYS = 604_800;

const BONDER = utils.getAddress("0xa6a688f107851131f0e1dce493ebbebfaf99203e");
const settings = (bonder?: string) => ({
  ...getBuiltInFeeSettings("mainnet"),
  bonders: bonder === undefined ? {} : { ETH: { polygon: { optimism: bonder, ethereum: bonder } } },
});

describe("the bond of a transfer", () => {
  test("to an L2 with pools is distributed, with a deadline in seven days", () => {
    const bond = buildBondTransaction(findQuoteRoute("ETH", "polygon", "optimism"), settings(BONDER), true);
    if (bond === undefined) throw new Error("it can be estimated");
    expect(bond).toMatchObject({
      from: BONDER.toLowerCase(),
      to: addressOf("ETH", "optimism", "l2Bridge"),
      gasMargin: 0n,
      fallbackGas: 350_000n,
      hasL1Fee: true,
    });
    const expected = abi.encodeFunctionData("bondWithdrawalAndDistribute", [...SAMPLE_TRANSFER, 0, NOW + SEVEN_DAYS]);
    expect(encodeDeliveryCalldata(bond, NOW)).toBe(expected);
  });

  test.each([
    ["to ethereum", "ETH", "ethereum", true, "l1Bridge"],
    ["of a token without pools", "HOP", "optimism", false, "l2Bridge"],
  ])("%s is only paid out", (_, token, to, hasPools, bridge) => {
    const bond = buildBondTransaction(findQuoteRoute(token, "polygon", to), settings(), hasPools);
    if (bond === undefined) throw new Error("it can be estimated");
    expect(bond.to).toBe(addressOf(token, to, bridge));
    expect(encodeDeliveryCalldata(bond, NOW)).toBe(abi.encodeFunctionData("bondWithdrawal", SAMPLE_TRANSFER));
  });

  test("is sent by nobody in particular where the settings have no bonder", () => {
    const route = findQuoteRoute("ETH", "polygon", "optimism");
    expect(buildBondTransaction(route, settings(), true)?.from).toBeUndefined();
    const others = { ...settings(), bonders: { ETH: { gnosis: { optimism: BONDER } }, DAI: {} } };
    expect(buildBondTransaction(route, others, true)?.from).toBeUndefined();
    expect(buildBondTransaction(route, { ...others, bonders: { ETH: { polygon: {} } } }, true)?.from).toBeUndefined();
  });

  test("is not estimated where ethers refuses the bonder's address", () => {
    const route = findQuoteRoute("ETH", "polygon", "optimism");
    expect(buildBondTransaction(route, settings(`${BONDER} `), true)).toBeUndefined();
  });

  test("costs an L1 fee on the chains of the OP Stack that the SDK knows", () => {
    const destinations = ["ethereum", "arbitrum", "nova", "gnosis", "linea", "base", "optimism"];
    const charging = destinations.filter(
      (to) => buildBondTransaction(findQuoteRoute("ETH", "polygon", to), settings(), true)?.hasL1Fee,
    );
    expect(charging).toEqual(["base", "optimism"]);
  });
});

describe("the delivery of a transfer by CCTP", () => {
  test("receives the sample message with its attestation", () => {
    const attestation = "0xAbCd01";
    const mint = buildMintTransaction(findQuoteRoute("USDC", "polygon", "optimism"), attestation);
    expect(mint).toEqual({
      from: undefined,
      to: addressOf("USDC", "optimism", "cctpMessageTransmitter"),
      calldata: expect.any(String),
      deadlineSeconds: undefined,
      fallbackGas: 500_000n,
      gasMargin: 50_000n,
      hasL1Fee: false,
    });
    const message = buildSampleCctpMessage("optimism")?.bytes;
    expect(mint?.calldata.toLowerCase()).toBe(abi.encodeFunctionData("receiveMessage", [message, attestation]));
  });

  test.each(["", "0x5", "5a", "0x5g", "0x5a ", " 0x5a", "null"])(
    "is not estimated with an attestation that is no bytes: '%s'",
    (attestation) => {
      expect(buildMintTransaction(findQuoteRoute("USDC", "polygon", "optimism"), attestation)).toBeUndefined();
    },
  );

  test("is not estimated on a chain without CCTP", () => {
    const { chains } = findQuoteRoute("ETH", "polygon", "gnosis").network;
    const route = { ...findQuoteRoute("USDC", "polygon", "optimism"), destination: chains.get("gnosis") };
    expect(buildMintTransaction(route as ReturnType<typeof findQuoteRoute>, "0x5a")).toBeUndefined();
  });
});

describe("the cost of a delivery", () => {
  const delivery = buildMintTransaction(findQuoteRoute("USDC", "polygon", "optimism"), "0x5a");
  if (delivery === undefined) throw new Error("it can be estimated");
  const state = (gasPrice: bigint | undefined) =>
    createChainState([[getDeliveryKey(delivery), { gas: 90_000n, l1Fee: 5n }]], { gasPrice });

  test("is what was read for it", () => {
    expect(computeDeliveryCost(state(7n), delivery, 1n)).toEqual({ gasPrice: 7n, gas: 90_000n, l1Fee: 5n });
  });

  test("is that of the SDK's gas if there is nothing to estimate", () => {
    expect(computeDeliveryCost(state(7n), undefined, 165_000n)).toEqual({ gasPrice: 7n, gas: 165_000n, l1Fee: 0n });
  });

  test("is unknown without a gas price", () => {
    expect(() => computeDeliveryCost(state(undefined), delivery, 1n)).toThrow("no gas price");
  });
});
