import { keccak_256 } from "@noble/hashes/sha3.js";
import { bytesToHex, hexToBytes } from "@noble/hashes/utils.js";
import {
  decodeUintAt,
  encodeBytes,
  encodeWithOffsets,
  toEventTopic,
  toFunctionSelector,
} from "../chain/abi/abi-encoding.js";
import { isHexData } from "../chain/hex.js";
import type { Log } from "../chain/read/chain-reads.js";
import type { Chain } from "./networks.js";

/** CCTP domain IDs by chain slug. The SDK has the same table, but only behind its heavy root import. */
const CCTP_DOMAINS: Readonly<Record<string, number>> = { ethereum: 0, optimism: 2, arbitrum: 3, base: 6, polygon: 7 };

/** Circle's TokenMessenger contracts by slug. The SDK's address book lacks them; its sample messages contain them. */
export const TOKEN_MESSENGERS: Readonly<Record<string, string>> = {
  ethereum: "0xBd3fa81B58Ba92a82136038B25aDec7066af3155",
  polygon: "0x9daF8c91AEFAE50b9c0E69629D3F6Ca40cA3B3FE",
  optimism: "0x2B4069517957735bE00ceE0fadAE88a26365528f",
  arbitrum: "0x19330d10D9Cc8751218eaf51E8885D058642E08A",
  base: "0x1682Ae6375C4E4A97e4B583BC394c861A46D8962",
};

/** Circle's TokenMinter contracts by slug, which limit what one message burns. The TokenMessenger's `localMinter()`. */
export const TOKEN_MINTERS: Readonly<Record<string, string>> = {
  ethereum: "0xc4922d64a24675E16e1586e3e3Aa56C06fABe907",
  polygon: "0x10f7835F827D6Cf035115E10c50A853d7FB2D2EC",
  optimism: "0x33E76C5C31cb928dc6FE6487AB3b2C0769B1A1e3",
  arbitrum: "0xE7Ed1fa7f45D05C508232aa32649D89b73b8bA48",
  base: "0xe45B133ddc64bE80252b0e9c75A8E74EF280eEd6",
};

/** USDC contracts on the source chains of the sample messages. */
const BURN_TOKENS: Readonly<Record<string, string>> = {
  polygon: "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359",
  arbitrum: "0xaf88d065e77c8cC2239327C5EDb3A432268e5831",
};

/**
 * One message to each chain, by source and nonce, that was really sent and never received, so that its delivery can be
 * estimated. The SDK (getCctpReceiveMessageEstimateGasLimit) contains the same messages.
 */
const SAMPLE_MESSAGES: Readonly<Record<string, { readonly source: string; readonly nonce: number }>> = {
  ethereum: { source: "polygon", nonce: 0xbe73 },
  optimism: { source: "polygon", nonce: 0xbe71 },
  polygon: { source: "arbitrum", nonce: 0x1a4bb },
  arbitrum: { source: "polygon", nonce: 0xbe6f },
  base: { source: "polygon", nonce: 0xbe6d },
};
/** The account that sent the samples to itself, and the amount: 0.01 USDC. */
const SAMPLE_SENDER = "0x9997da3de3ec197c853bcc96caecf08a81de9d69";
const SAMPLE_AMOUNT = 10_000n;

/** Offset of the fourth word of a BurnMessage, after version (4 bytes), token, recipient and amount. */
const BURNER_OFFSET_BYTES = 4 + 3 * 32;
/** Offset of the message in the event's data, after domain, sender, offset and length (one word each). */
const BODY_OFFSET_BYTES = 4 * 32;

/** Returns the CCTP domain ID of a chain; undefined without CCTP. */
export function getCctpDomain(chain: Pick<Chain, "slug">): number | undefined {
  return CCTP_DOMAINS[chain.slug];
}

export interface CctpMessage {
  /** 0x-prefixed hex. */
  readonly bytes: string;
  /** keccak256 of the message, the key of Circle's attestation. */
  readonly hash: string;
}

/** Builds the message whose delivery to a chain is estimated; undefined for a chain without CCTP. */
export function buildSampleCctpMessage(destinationSlug: string): CctpMessage | undefined {
  const sample = SAMPLE_MESSAGES[destinationSlug];
  if (sample === undefined) return undefined;
  const { source, nonce } = sample;
  const header = [
    encodeUint(0, 4),
    encodeUint(CCTP_DOMAINS[source] ?? 0, 4),
    encodeUint(CCTP_DOMAINS[destinationSlug] ?? 0, 4),
    encodeUint(nonce, 8),
    encodeAddressWord(TOKEN_MESSENGERS[source]),
    encodeAddressWord(TOKEN_MESSENGERS[destinationSlug]),
    encodeUint(0, 32),
  ];
  const body = [
    encodeUint(0, 4),
    encodeAddressWord(BURN_TOKENS[source]),
    encodeAddressWord(SAMPLE_SENDER),
    encodeUint(SAMPLE_AMOUNT, 32),
  ];
  const hex = [...header, ...body, encodeAddressWord(SAMPLE_SENDER)].join("");
  return { bytes: `0x${hex}`, hash: `0x${bytesToHex(keccak_256(hexToBytes(hex)))}` };
}

/**
 * Decodes the burner from a MessageReceived log: the address, in lower case, that called `depositForBurn` on the source.
 * Returns undefined for a message that is too short. Layout: BurnMessage of CCTP V1.
 */
export function decodeBurnMessageSender({ data }: Log): string | undefined {
  const end = 2 + 2 * (BODY_OFFSET_BYTES + BURNER_OFFSET_BYTES + 32);
  return data.length < end ? undefined : `0x${data.slice(end - 40, end)}`;
}

/** What a message of CCTP V1 says. Addresses are lower case. */
export interface BurnMessage extends CctpMessage {
  readonly sourceDomain: number;
  readonly destinationDomain: number;
  readonly nonce: bigint;
  readonly mintRecipient: string;
  readonly amount: bigint;
  /** The address that called `depositForBurn`. */
  readonly burner: string;
}

/** Topic 0 of a MessageTransmitter's MessageSent(bytes). */
const MESSAGE_SENT_TOPIC = toEventTopic("MessageSent(bytes)");
/** Bytes of a message with a BurnMessage as its body. */
const BURN_MESSAGE_BYTES = 248;
const RECEIVE_MESSAGE_SELECTOR = toFunctionSelector("receiveMessage(bytes,bytes)");

/** Decodes MessageSent of a burn; returns undefined for other or malformed events. */
export function decodeBurnMessage({ topics, data }: Log): BurnMessage | undefined {
  if (topics[0] !== MESSAGE_SENT_TOPIC || decodeUintAt(data, 1) !== BigInt(BURN_MESSAGE_BYTES)) return undefined;
  return parseBurnMessage(`0x${data.slice(130, 130 + BURN_MESSAGE_BYTES * 2)}`);
}

/** Parses the message of a burn, 0x-prefixed hex; returns undefined for any other. */
export function parseBurnMessage(bytes: string): BurnMessage | undefined {
  const hex = bytes.slice(2).toLowerCase();
  if (!isHexData(bytes) || hex.length !== BURN_MESSAGE_BYTES * 2 || readField(hex, 0, 4) !== 0n) return undefined;
  return {
    bytes: `0x${hex}`,
    hash: `0x${bytesToHex(keccak_256(hexToBytes(hex)))}`,
    sourceDomain: Number(readField(hex, 4, 4)),
    destinationDomain: Number(readField(hex, 8, 4)),
    nonce: readField(hex, 12, 8),
    mintRecipient: `0x${hex.slice(2 * 164, 2 * 184)}`,
    amount: readField(hex, 184, 32),
    burner: `0x${hex.slice(2 * 228, 2 * 248)}`,
  };
}

/** Encodes a call of a MessageTransmitter's `receiveMessage`. */
export function encodeReceiveMessageCall(message: string, attestation: string): string {
  return RECEIVE_MESSAGE_SELECTOR + encodeWithOffsets([encodeBytes(message), encodeBytes(attestation)]);
}

/** @param start in bytes, as is the length */
function readField(hex: string, start: number, length: number): bigint {
  return BigInt(`0x${hex.slice(start * 2, (start + length) * 2)}`);
}

function encodeUint(value: number | bigint, bytes: number): string {
  return value.toString(16).padStart(bytes * 2, "0");
}

function encodeAddressWord(hex = ""): string {
  return hex.slice(2).toLowerCase().padStart(64, "0");
}

/** The Uniswap v3 pool that swaps USDC.e for USDC on an L2 before a CCTP transfer. */
export interface UsdcSwapPool {
  readonly address: string;
  readonly quoterAddress: string;
  /** USDC.e. */
  readonly bridgedUsdc: string;
  /** USDC. */
  readonly nativeUsdc: string;
  /** The pool's fee in millionths. It never changes: the pool's address is derived from it. */
  readonly feePips: bigint;
}

const DEFAULT_QUOTER_ADDRESS = "0xb27308f9F90D607463bb33eA1BeBb41C27CE5AB6";

/** Pools of mainnet by slug. The SDK contains the same addresses; a test compares the quotes. */
const USDC_SWAP_POOLS: Readonly<Record<string, UsdcSwapPool>> = {
  optimism: {
    address: "0x2aB22ac86b25BD448A4D9dC041Bd2384655299c4",
    quoterAddress: DEFAULT_QUOTER_ADDRESS,
    bridgedUsdc: "0x7F5c764cBc14f9669B88837ca1490cCa17c31607",
    nativeUsdc: "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85",
    feePips: 100n,
  },
  arbitrum: {
    address: "0x8e295789c9465487074a65b1ae9Ce0351172393f",
    quoterAddress: DEFAULT_QUOTER_ADDRESS,
    bridgedUsdc: "0xFF970A61A04b1cA14834A43f5dE4533eBDDB5CC8",
    nativeUsdc: "0xaf88d065e77c8cC2239327C5EDb3A432268e5831",
    feePips: 100n,
  },
  polygon: {
    address: "0xD36ec33c8bed5a9F7B6630855f1533455b98a418",
    quoterAddress: DEFAULT_QUOTER_ADDRESS,
    bridgedUsdc: "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174",
    nativeUsdc: "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359",
    feePips: 100n,
  },
  base: {
    address: "0x06959273E9A65433De71F5A452D529544E07dDD0",
    quoterAddress: "0x3d4e44Eb1374240CE5F1B871ab261CD16335B76a",
    bridgedUsdc: "0xd9aAEc86B65D86f6A7B5B1b0c42FFA531710b6CA",
    nativeUsdc: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    feePips: 100n,
  },
};

/** Returns the pool on a chain; undefined where USDC.e is not swapped. */
export function findUsdcSwapPool(slug: string): UsdcSwapPool | undefined {
  return USDC_SWAP_POOLS[slug];
}
