/** Chains whose slug is not their name in small letters. */
const CHAIN_NAMES: Readonly<Record<string, string>> = {
  nova: "Arbitrum Nova",
  polygonzk: "Polygon zkEVM",
};

/** What people call a chain; one that this page does not know is called by its slug. */
export function formatChainName(slug: string): string {
  return Object.hasOwn(CHAIN_NAMES, slug) ? (CHAIN_NAMES[slug] ?? slug) : slug.charAt(0).toUpperCase() + slug.slice(1);
}
