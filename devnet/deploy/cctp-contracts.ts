import { utils } from "ethers";
import { getCctpDomain, TOKEN_MESSENGERS, TOKEN_MINTERS } from "../../src/hop/cctp.js";
import { hopChains } from "../chain/local-chains.js";
import { feeCollector } from "./accounts.js";
import { getTokenContracts } from "./address-book.js";
import { attesters } from "./attestation.js";
import type { ContractPlacement } from "./contract-placement.js";
import { findUniswapContracts } from "./uniswap-contracts.js";

/** Minimum bonder fee of a Hop CCTP bridge, in units of USDC. */
const MIN_BONDER_FEES: Readonly<Record<string, number>> = { ethereum: 0, polygon: 120_000 };
const DEFAULT_MIN_BONDER_FEE = 100_000;
/** Burn limit per CCTP message, in units of USDC: one million. */
const BURN_LIMIT = 1_000_000_000_000n;
/** Far above the nonces of the SDK's sample messages, which must stay unused, and distinct per domain. */
const firstNonceOfDomain = (domain: number): number => (domain + 1) * 1_000_000;

interface CctpChain {
  readonly slug: string;
  readonly chainId: number;
  readonly domain: number;
  readonly usdc: string;
  readonly tokenMessenger: string;
  readonly tokenMinter: string;
}

/** Returns the placements of Circle's contracts and Hop's CCTP bridges; none on a chain without CCTP. */
export function placeCctpContracts(slug: string): readonly ContractPlacement[] {
  const chains = listCctpChains();
  const here = chains.find((chain) => chain.slug === slug);
  if (here === undefined) return [];
  const elsewhere = chains.filter((chain) => chain !== here);
  const transmitter = getTokenContracts("USDC", slug).get("cctpMessageTransmitter");
  return [
    {
      contract: "MessageTransmitter",
      address: transmitter,
      initializer: { method: "initialize", values: [here.domain, firstNonceOfDomain(here.domain), attesters] },
    },
    {
      contract: "TokenMessenger",
      address: here.tokenMessenger,
      initializer: {
        method: "initialize",
        values: [
          transmitter,
          here.tokenMinter,
          elsewhere.map(({ domain, tokenMessenger }) => ({ domain, messenger: toBytes32(tokenMessenger) })),
        ],
      },
    },
    {
      contract: "TokenMinter",
      address: here.tokenMinter,
      initializer: {
        method: "initialize",
        values: [
          here.tokenMessenger,
          here.usdc,
          BURN_LIMIT,
          elsewhere.map(({ domain, usdc }) => ({ domain, token: toBytes32(usdc) })),
        ],
      },
    },
    placeHopBridge(here, elsewhere),
  ];
}

function placeHopBridge(here: CctpChain, elsewhere: readonly CctpChain[]): ContractPlacement {
  const token = getTokenContracts("USDC", here.slug);
  const destinations = elsewhere.map(({ chainId, domain }) => ({ chainId, domain }));
  const minBonderFee = MIN_BONDER_FEES[here.slug] ?? DEFAULT_MIN_BONDER_FEE;
  const values = [here.usdc, here.tokenMessenger, feeCollector, minBonderFee, destinations];
  const l1 = token.find("cctpL1Bridge");
  if (l1 !== undefined) return { contract: "L1HopCctp", address: l1, initializer: { method: "initialize", values } };
  const bridged = getTokenContracts("USDC.e", here.slug).get("l2CanonicalToken");
  const initializer = { method: "initializeL2", values: [...values, bridged, findUniswapContracts(here.slug)?.router] };
  return { contract: "L2HopCctp", address: token.get("cctpL2Bridge"), initializer };
}

function listCctpChains(): readonly CctpChain[] {
  return [...hopChains.values()].flatMap((chain) => {
    const { slug, chainId } = chain;
    const token = getTokenContracts("USDC", slug);
    const usdc = token.find("l1CanonicalToken") ?? token.find("l2CanonicalToken");
    const domain = getCctpDomain(chain);
    const tokenMessenger = TOKEN_MESSENGERS[slug];
    const tokenMinter = TOKEN_MINTERS[slug];
    if (usdc === undefined || domain === undefined) return [];
    if (tokenMessenger === undefined || tokenMinter === undefined) return [];
    return [{ slug, chainId, domain, usdc, tokenMessenger, tokenMinter }];
  });
}

function toBytes32(address: string): string {
  return utils.hexZeroPad(address, 32);
}
