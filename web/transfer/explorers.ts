/** Explorers by chain ID. */
const EXPLORERS: Readonly<Record<number, string>> = {
  1: "https://etherscan.io",
  10: "https://optimistic.etherscan.io",
  100: "https://gnosisscan.io",
  137: "https://polygonscan.com",
  1101: "https://zkevm.polygonscan.com",
  8453: "https://basescan.org",
  42161: "https://arbiscan.io",
  42170: "https://nova.arbiscan.io",
  59144: "https://lineascan.build",
};

/** Returns the page of a contract or transaction in the explorer of its chain; undefined: no explorer is known. */
export function findExplorerUrl(chainId: number, kind: "address" | "tx", id: string): string | undefined {
  const explorer = EXPLORERS[chainId];
  return explorer === undefined ? undefined : `${explorer}/${kind}/${id}`;
}
