import { constants } from "ethers";
import { hopChains, isNativeCoin } from "../chain/local-chains.js";
import { messenger, poolOwner } from "./accounts.js";
import {
  getBonderStake,
  getTokenContracts,
  listBonders,
  listBridgedChainIds,
  listTokenContracts,
  type TokenContracts,
} from "./address-book.js";
import type { ContractPlacement } from "./contract-placement.js";
import { getInitialPoolState } from "./pool-state.js";
import type { InitialBalance } from "./token-contracts.js";

const MIN_BONDER_BPS = 2;
/** Absolute minimum bonder fee of an L2 bridge, in the token's smallest unit; 0 if not listed. */
const MIN_BONDER_FEES: Readonly<Record<string, bigint>> = {
  "ETH.gnosis": 500_000_000_000_000n,
  "ETH.polygon": 250_000_000_000_000n,
};

/** Returns the placements of bridges, pools and wrappers of every token on a chain. */
export function placeHopContracts(slug: string): readonly ContractPlacement[] {
  return listTokenContracts(slug).flatMap((token) => {
    if (token.find("l1Bridge") !== undefined) return [placeL1Bridge(token, slug)];
    if (token.find("l2Bridge") === undefined) return [];
    if (token.find("l2SaddleSwap") === undefined) return [placeL2Bridge(token, slug)];
    return [placeL2Bridge(token, slug), placePool(token, slug), placeAmmWrapper(token, slug)];
  });
}

/** Returns the initial balances of pools, L1 bridges and LP token holders. */
export function listHopBalances(slug: string): readonly InitialBalance[] {
  return listTokenContracts(slug).flatMap((token) => {
    const holder = token.find("l2SaddleSwap");
    if (holder !== undefined) {
      const { canonical, hToken, lpSupply } = getInitialPoolState(token.token, slug);
      return [
        { token: token.get("l2CanonicalToken"), holder, amount: canonical },
        { token: token.get("l2HopBridgeToken"), holder, amount: hToken },
        { token: token.get("l2SaddleLpToken"), holder: poolOwner, amount: lpSupply },
      ];
    }
    const bridge = token.find("l1Bridge");
    const canonical = token.find("l1CanonicalToken");
    if (bridge === undefined || canonical === undefined) return [];
    return [{ token: canonical, holder: bridge, amount: computeL1BridgeBalance(token.token) }];
  });
}

function placeL1Bridge(token: TokenContracts, slug: string): ContractPlacement {
  const canonical = token.find("l1CanonicalToken");
  const values = [canonical ?? constants.AddressZero, ...bridgeInitializerValues(token.token, slug)];
  return {
    contract: "L1Bridge",
    address: token.get("l1Bridge"),
    initializer: { method: "initialize", values },
    ...(canonical === undefined ? { balance: computeL1BridgeBalance(token.token) } : {}),
  };
}

function placeL2Bridge(token: TokenContracts, slug: string): ContractPlacement {
  const wrapper = token.find("l2AmmWrapper") ?? constants.AddressZero;
  const [chainIds, ...bonding] = bridgeInitializerValues(token.token, slug);
  const minBonderFee = MIN_BONDER_FEES[`${token.token}.${slug}`] ?? 0n;
  const values = [token.get("l2HopBridgeToken"), wrapper, chainIds, MIN_BONDER_BPS, minBonderFee, ...bonding];
  return { contract: "L2Bridge", address: token.get("l2Bridge"), initializer: { method: "initialize", values } };
}

function bridgeInitializerValues(token: string, slug: string): readonly unknown[] {
  return [listBridgedChainIds(token, slug), messenger, listBonders(token, slug), getBonderStake(token)];
}

/** Computes the balance of an L1 bridge: the backing of every hToken on the L2s and the bonders' stake. */
function computeL1BridgeBalance(token: string): bigint {
  const l2s = [...hopChains.keys()].filter((slug) => getTokenContracts(token, slug).find("l2SaddleSwap") !== undefined);
  return l2s.reduce((sum, slug) => sum + getInitialPoolState(token, slug).hToken, getBonderStake(token));
}

function placePool(token: TokenContracts, slug: string): ContractPlacement {
  const { canonical, hToken, a, swapFee } = getInitialPoolState(token.token, slug);
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
  return { contract: "StableSwap", address: token.get("l2SaddleSwap"), initializer: { method: "initialize", values } };
}

function placeAmmWrapper(token: TokenContracts, slug: string): ContractPlacement {
  const values = [
    token.get("l2Bridge"),
    token.get("l2CanonicalToken"),
    isNativeCoin(token.token, slug),
    token.get("l2HopBridgeToken"),
    token.get("l2SaddleSwap"),
  ];
  return { contract: "AmmWrapper", address: token.get("l2AmmWrapper"), initializer: { method: "initialize", values } };
}
