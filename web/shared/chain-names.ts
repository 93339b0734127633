/** Chains whose slug is not their name in small letters. */
const names: Readonly<Record<string, string>> = {
  nova: "Arbitrum Nova",
  polygonzk: "Polygon zkEVM",
};

/** What people call a chain; one that this page does not know is called by its slug. */
export function chainName(slug: string): string {
  return Object.hasOwn(names, slug) ? (names[slug] ?? slug) : slug.charAt(0).toUpperCase() + slug.slice(1);
}
