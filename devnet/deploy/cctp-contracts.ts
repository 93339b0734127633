import { utils } from "ethers";
import { cctpDomainOf, tokenMessengers } from "../../src/hop/cctp/cctp.js";
import { hopChains } from "../chain/local-chains.js";
import { feeCollector, tokenMinter } from "./accounts.js";
import { tokenOnChain } from "./address-book.js";
import { attesters } from "./attestation.js";
import type { Placement } from "./contract-placement.js";
import { findUniswap } from "./uniswap-contracts.js";

/** Fee that a Hop CCTP bridge asks at least, in units of USDC. */
const minBonderFees: Readonly<Record<string, number>> = { ethereum: 0, polygon: 120_000 };
const otherMinBonderFee = 100_000;
/** The most that one CCTP message may burn, in units of USDC: a million. */
const burnLimit = 1_000_000_000_000n;
/** Far above the nonces of the SDK's own messages, which must stay unused, and apart from other domains' nonces. */
const firstNonceOf = (domain: number): number => (domain + 1) * 1_000_000;

interface CctpChain {
  readonly slug: string;
  readonly chainId: number;
  readonly domain: number;
  readonly usdc: string;
  readonly tokenMessenger: string;
}

/** Circle's contracts and Hop's entry to them; nothing on a chain without CCTP. */
export function cctpPlacements(slug: string): readonly Placement[] {
  const chains = cctpChains();
  const here = chains.find((chain) => chain.slug === slug);
  if (here === undefined) return [];
  const elsewhere = chains.filter((chain) => chain !== here);
  const transmitter = tokenOnChain("USDC", slug).get("cctpMessageTransmitter");
  return [
    {
      contract: "MessageTransmitter",
      address: transmitter,
      setUp: { method: "initialize", values: [here.domain, firstNonceOf(here.domain), attesters] },
    },
    {
      contract: "TokenMessenger",
      address: here.tokenMessenger,
      setUp: {
        method: "initialize",
        values: [
          transmitter,
          tokenMinter,
          elsewhere.map(({ domain, tokenMessenger }) => ({ domain, messenger: toBytes32(tokenMessenger) })),
        ],
      },
    },
    {
      contract: "TokenMinter",
      address: tokenMinter,
      setUp: {
        method: "initialize",
        values: [
          here.tokenMessenger,
          here.usdc,
          burnLimit,
          elsewhere.map(({ domain, usdc }) => ({ domain, token: toBytes32(usdc) })),
        ],
      },
    },
    hopBridge(here, elsewhere),
  ];
}

function hopBridge(here: CctpChain, elsewhere: readonly CctpChain[]): Placement {
  const token = tokenOnChain("USDC", here.slug);
  const destinations = elsewhere.map(({ chainId, domain }) => ({ chainId, domain }));
  const minBonderFee = minBonderFees[here.slug] ?? otherMinBonderFee;
  const values = [here.usdc, here.tokenMessenger, feeCollector, minBonderFee, destinations];
  const l1 = token.find("cctpL1Bridge");
  if (l1 !== undefined) return { contract: "L1HopCctp", address: l1, setUp: { method: "initialize", values } };
  const bridged = tokenOnChain("USDC.e", here.slug).get("l2CanonicalToken");
  const setUp = { method: "initializeL2", values: [...values, bridged, findUniswap(here.slug)?.router] };
  return { contract: "L2HopCctp", address: token.get("cctpL2Bridge"), setUp };
}

function cctpChains(): readonly CctpChain[] {
  return [...hopChains.values()].flatMap((chain) => {
    const { slug, chainId } = chain;
    const token = tokenOnChain("USDC", slug);
    const usdc = token.find("l1CanonicalToken") ?? token.find("l2CanonicalToken");
    const domain = cctpDomainOf(chain);
    const tokenMessenger = tokenMessengers[slug];
    if (usdc === undefined || domain === undefined || tokenMessenger === undefined) return [];
    return [{ slug, chainId, domain, usdc, tokenMessenger }];
  });
}

function toBytes32(address: string): string {
  return utils.hexZeroPad(address, 32);
}
