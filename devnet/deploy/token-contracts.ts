import { TOKEN_MINTERS } from "../../src/hop/cctp.js";
import { isNativeCoin } from "../chain/local-chains.js";
import { faucet } from "./accounts.js";
import { listTokenContracts, type TokenContracts } from "./address-book.js";
import type { ContractPlacement } from "./contract-placement.js";

/** Initial balance of an account, in the token's smallest unit. */
export interface InitialBalance {
  /** Address of the token. */
  readonly token: string;
  readonly holder: string;
  readonly amount: bigint;
}

interface TokenName {
  readonly name: string;
  readonly symbol: string;
}

const TOKEN_NAMES: Readonly<Record<string, TokenName>> = {
  USDC: { name: "USD Coin", symbol: "USDC" },
  "USDC.e": { name: "USD Coin Bridged", symbol: "USDC.e" },
  USDT: { name: "Tether USD", symbol: "USDT" },
  MATIC: { name: "Matic Token", symbol: "MATIC" },
  DAI: { name: "Dai Stablecoin", symbol: "DAI" },
  ETH: { name: "Wrapped Ether", symbol: "WETH" },
  HOP: { name: "Hop", symbol: "HOP" },
  SNX: { name: "Synthetix Network Token", symbol: "SNX" },
  sUSD: { name: "Synth sUSD", symbol: "sUSD" },
  rETH: { name: "Rocket Pool ETH", symbol: "rETH" },
  MAGIC: { name: "MAGIC", symbol: "MAGIC" },
};

/** Canonical tokens that are the wrapped native coin of a chain under another name. */
const WRAPPED_TOKEN_NAMES: Readonly<Record<string, TokenName>> = {
  MATIC: { name: "Wrapped Matic", symbol: "WMATIC" },
  DAI: { name: "Wrapped XDAI", symbol: "WXDAI" },
};

/** Returns the placements of every token contract of a chain: canonical tokens, hTokens and LP tokens, with initial balances. */
export function placeTokenContracts(slug: string, holdings: readonly InitialBalance[]): readonly ContractPlacement[] {
  const placements = new Map<string, ContractPlacement>();
  for (const token of listTokenContracts(slug)) {
    for (const placement of placeToken(token, slug, holdings)) {
      // USDC and USDC.e are the same token on L1; the first one names it.
      if (!placements.has(placement.address)) placements.set(placement.address, placement);
    }
  }
  return [...placements.values()];
}

function placeToken(
  token: TokenContracts,
  slug: string,
  holdings: readonly InitialBalance[],
): readonly ContractPlacement[] {
  const { name, symbol } = getTokenName(token.token);
  const canonical = token.find("l1CanonicalToken") ?? token.find("l2CanonicalToken");
  const hToken = token.find("l2HopBridgeToken");
  const lpToken = token.find("l2SaddleLpToken");
  const held = (address: string): Pick<InitialBalance, "holder" | "amount">[] =>
    holdings.filter((holding) => holding.token === address);

  const plain = (address: string, title: TokenName, decimals: number, owner: string): ContractPlacement => ({
    contract: "Token",
    address,
    initializer: {
      method: "initialize",
      values: [
        title.name,
        title.symbol,
        decimals,
        owner,
        token.token === "USDC" ? [TOKEN_MINTERS[slug]] : [],
        held(address),
      ],
    },
  });
  const wrapped = (address: string): ContractPlacement => {
    const title = WRAPPED_TOKEN_NAMES[token.token] ?? { name, symbol };
    const balance = held(address).reduce((sum, { amount }) => sum + amount, 0n);
    const values = [title.name, title.symbol, held(address)];
    return { contract: "WrappedNative", address, initializer: { method: "initialize", values }, balance };
  };

  const placements: ContractPlacement[] = [];
  // HOP has no separate hToken: the bridge burns and mints HOP itself.
  if (canonical !== undefined && canonical !== hToken) {
    const isWrapped = isNativeCoin(token.token, slug);
    placements.push(isWrapped ? wrapped(canonical) : plain(canonical, { name, symbol }, token.decimals, faucet));
  }
  if (hToken !== undefined) {
    const title = hToken === canonical ? { name, symbol } : { name: `${name} Hop Token`, symbol: `h${token.token}` };
    placements.push(plain(hToken, title, token.decimals, token.get("l2Bridge")));
  }
  if (lpToken !== undefined) {
    const title = { name: `Hop ${token.token} LP Token`, symbol: `HOP-LP-${token.token}` };
    placements.push(plain(lpToken, title, 18, token.get("l2SaddleSwap")));
  }
  return placements;
}

function getTokenName(token: string): TokenName {
  const found = TOKEN_NAMES[token];
  if (found === undefined) throw new Error(`no name for token ${token}`);
  return found;
}
