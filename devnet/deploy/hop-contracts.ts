import { constants } from "ethers";
import { hopChains, isNativeCoin } from "../chain/local-chains.js";
import { messenger, poolOwner } from "./accounts.js";
import { bonderStake, bondersTo, bridgedChainIds, type TokenOnChain, tokenOnChain, tokensOn } from "./address-book.js";
import type { Placement } from "./contract-placement.js";
import { poolState } from "./pool-state.js";
import type { Holding } from "./token-contracts.js";

const minBonderBps = 2;
/** Least bonder fee that an L2 bridge takes, in the token's smallest unit; 0 where none is named. */
const minBonderFees: Readonly<Record<string, bigint>> = {
  "ETH.gnosis": 500_000_000_000_000n,
  "ETH.polygon": 250_000_000_000_000n,
};

/** The bridges of every token on a chain, with their pools and wrappers. */
export function hopPlacements(slug: string): readonly Placement[] {
  return tokensOn(slug).flatMap((token) => {
    if (token.find("l1Bridge") !== undefined) return [l1Bridge(token, slug)];
    if (token.find("l2Bridge") === undefined) return [];
    if (token.find("l2SaddleSwap") === undefined) return [l2Bridge(token, slug)];
    return [l2Bridge(token, slug), pool(token, slug), ammWrapper(token, slug)];
  });
}

/** What lies in the pools and in the L1 bridges at the start, and who holds the LP tokens. */
export function hopHoldings(slug: string): readonly Holding[] {
  return tokensOn(slug).flatMap((token) => {
    const holder = token.find("l2SaddleSwap");
    if (holder !== undefined) {
      const { canonical, hToken, lpSupply } = poolState(token.token, slug);
      return [
        { token: token.get("l2CanonicalToken"), holder, amount: canonical },
        { token: token.get("l2HopBridgeToken"), holder, amount: hToken },
        { token: token.get("l2SaddleLpToken"), holder: poolOwner, amount: lpSupply },
      ];
    }
    const bridge = token.find("l1Bridge");
    const canonical = token.find("l1CanonicalToken");
    if (bridge === undefined || canonical === undefined) return [];
    return [{ token: canonical, holder: bridge, amount: backing(token.token) }];
  });
}

function l1Bridge(token: TokenOnChain, slug: string): Placement {
  const canonical = token.find("l1CanonicalToken");
  const values = [canonical ?? constants.AddressZero, ...bridgeSetUp(token.token, slug)];
  return {
    contract: "L1Bridge",
    address: token.get("l1Bridge"),
    setUp: { method: "initialize", values },
    ...(canonical === undefined ? { balance: backing(token.token) } : {}),
  };
}

function l2Bridge(token: TokenOnChain, slug: string): Placement {
  const wrapper = token.find("l2AmmWrapper") ?? constants.AddressZero;
  const [chainIds, ...bonding] = bridgeSetUp(token.token, slug);
  const minBonderFee = minBonderFees[`${token.token}.${slug}`] ?? 0n;
  const values = [token.get("l2HopBridgeToken"), wrapper, chainIds, minBonderBps, minBonderFee, ...bonding];
  return { contract: "L2Bridge", address: token.get("l2Bridge"), setUp: { method: "initialize", values } };
}

function bridgeSetUp(token: string, slug: string): readonly unknown[] {
  return [bridgedChainIds(token, slug), messenger, bondersTo(token, slug), bonderStake(token)];
}

/** What an L1 bridge holds: the counterpart of every hToken on the L2s, and the bonders' stake. */
function backing(token: string): bigint {
  const l2s = [...hopChains.keys()].filter((slug) => tokenOnChain(token, slug).find("l2SaddleSwap") !== undefined);
  return l2s.reduce((sum, slug) => sum + poolState(token, slug).hToken, bonderStake(token));
}

function pool(token: TokenOnChain, slug: string): Placement {
  const { canonical, hToken, a, swapFee } = poolState(token.token, slug);
  const parameters = {
    initialA: a,
    futureA: a,
    initialATime: 0,
    futureATime: 0,
    swapFee,
    adminFee: 0,
    defaultWithdrawFee: 0,
    lpToken: token.get("l2SaddleLpToken"),
  };
  const tokens = [token.get("l2CanonicalToken"), token.get("l2HopBridgeToken")];
  const values = [poolOwner, tokens, token.decimals, [canonical, hToken], parameters];
  return { contract: "StableSwap", address: token.get("l2SaddleSwap"), setUp: { method: "initialize", values } };
}

function ammWrapper(token: TokenOnChain, slug: string): Placement {
  const values = [
    token.get("l2Bridge"),
    token.get("l2CanonicalToken"),
    isNativeCoin(token.token, slug),
    token.get("l2HopBridgeToken"),
    token.get("l2SaddleSwap"),
  ];
  return { contract: "AmmWrapper", address: token.get("l2AmmWrapper"), setUp: { method: "initialize", values } };
}
