import { encodeWord, isAddress, toFunctionSelector } from "../../chain/abi/abi-encoding.js";
import { buildSampleCctpMessage, encodeReceiveMessageCall } from "../../hop/cctp.js";
import type { FeeSettings } from "../../hop/fee-settings.js";
import { CCTP_FALLBACK_GAS, CCTP_GAS_MARGIN, getBondFallbackGas } from "../math/fees.js";
import type { DeliveryCost } from "../math/route-snapshot.js";
import type { ChainState } from "./chain-state.js";
import { getTokenContracts, type QuoteRoute, requireAddress } from "./quote-request.js";
import { type DeliveryTransaction, getDeliveryKey } from "./read-set.js";

const SEVEN_DAYS_SECONDS = 7 * 24 * 60 * 60;

const bondWithdrawalSelector = toFunctionSelector("bondWithdrawal(address,uint256,bytes32,uint256)");
const bondWithdrawalAndDistributeSelector = toFunctionSelector(
  "bondWithdrawalAndDistribute(address,uint256,bytes32,uint256,uint256,uint256)",
);

/** The transfer whose bond the SDK's populateBondWithdrawalTx estimates: recipient, amount, nonce, bonder fee. */
const SAMPLE_TRANSFER_WORDS = [encodeWord(`0x${"1".repeat(40)}`), encodeWord(10n), encodeWord(0n), encodeWord(1n)].join(
  "",
);

/** Chains that charge for transaction data on L1 through the OP Stack's gas price oracle. */
const L1_FEE_SLUGS = new Set(["optimism", "base"]);

/** Builds the bond that the SDK estimates (populateBondWithdrawalTx); undefined where only the fallback gas applies. */
export function buildBondTransaction(
  route: QuoteRoute,
  settings: FeeSettings,
  hasPools: boolean,
): DeliveryTransaction | undefined {
  const { token, source, destination } = route;
  const bonder = settings.bonders[token.symbol]?.[source.slug]?.[destination.slug];
  // One of the SDK's built-in addresses ends in a space; ethers rejects it, and the SDK falls back to its constant.
  if (bonder !== undefined && !isAddress(bonder)) return undefined;
  const bridge = getTokenContracts(route, destination);
  const distributes = hasPools && !destination.isL1;
  return {
    from: bonder?.toLowerCase(),
    to: requireAddress(bridge.l1Bridge ?? bridge.l2Bridge),
    calldata: distributes
      ? bondWithdrawalAndDistributeSelector + SAMPLE_TRANSFER_WORDS + encodeWord(0n)
      : bondWithdrawalSelector + SAMPLE_TRANSFER_WORDS,
    deadlineSeconds: distributes ? SEVEN_DAYS_SECONDS : undefined,
    fallbackGas: getBondFallbackGas(destination.slug),
    gasMargin: 0n,
    hasL1Fee: L1_FEE_SLUGS.has(destination.slug),
  };
}

/** Builds the CCTP delivery that the SDK estimates (getCctpReceiveMessagePopulatedTx); undefined without CCTP. */
export function buildMintTransaction(route: QuoteRoute, attestation: string): DeliveryTransaction | undefined {
  const { destination } = route;
  const message = buildSampleCctpMessage(destination.slug);
  if (message === undefined || !/^0x([0-9a-f]{2})*$/i.test(attestation)) return undefined;
  return {
    from: undefined,
    to: requireAddress(getTokenContracts(route, destination).cctpMessageTransmitter),
    calldata: encodeReceiveMessageCall(message.bytes, attestation),
    deadlineSeconds: undefined,
    fallbackGas: CCTP_FALLBACK_GAS,
    gasMargin: CCTP_GAS_MARGIN,
    hasL1Fee: false,
  };
}

/** Returns the cost of a delivery from what was read; without a transaction to estimate, with the fallback gas. */
export function computeDeliveryCost(
  state: ChainState,
  delivery: DeliveryTransaction | undefined,
  fallbackGas: bigint,
): DeliveryCost {
  const { gasPrice } = state;
  if (gasPrice === undefined) throw new Error("the chain state has no gas price for a delivery");
  const cost =
    delivery === undefined ? { gas: fallbackGas, l1Fee: 0n } : state.getDeliveryGasCost(getDeliveryKey(delivery));
  return { gasPrice, ...cost };
}
