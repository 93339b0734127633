/** Chains whose name is not their slug with a capital letter. */
const CHAIN_NAMES: Readonly<Record<string, string>> = {
  nova: "Arbitrum Nova",
  polygonzk: "Polygon zkEVM",
};

/** Returns the display name of a chain. Falls back to the capitalized slug. */
export function formatChainName(slug: string): string {
  return Object.hasOwn(CHAIN_NAMES, slug) ? (CHAIN_NAMES[slug] ?? slug) : slug.charAt(0).toUpperCase() + slug.slice(1);
}
