/** What is wrong with an amount, in a sentence for whoever typed it. */
export class AmountError extends Error {}

/**
 * An amount as people write it, in the token's smallest unit. Exact: no part of it is ever a floating-point number.
 * @param text digits, with a point where there is a fraction, such as `0.5`
 * @param decimals of the token
 * @throws AmountProblem
 */
export function parseAmount(text: string, decimals: number): bigint {
  const trimmed = text.trim();
  if (trimmed === "") throw new AmountError("Enter an amount.");
  const [, whole = "", fraction = ""] = /^([0-9]*)(?:\.([0-9]*))?$/.exec(trimmed) ?? [];
  if (whole + fraction === "") {
    throw new AmountError("Write the amount in plain digits, with a point before the fraction: 1234.5");
  }
  const significant = fraction.replace(/0+$/, "");
  if (significant.length > decimals) {
    const most = decimals === 0 ? "no decimals" : `at most ${decimals} decimals`;
    throw new AmountError(`This token has ${most}; the amount has ${significant.length}.`);
  }
  return BigInt(whole + significant.padEnd(decimals, "0"));
}

/**
 * An amount in whole tokens: all of its digits, without zeros that say nothing.
 * @param raw in the token's smallest unit, not negative
 */
export function formatAmount(raw: bigint, decimals: number): string {
  const digits = raw.toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

/** A plain number with commas between its thousands. */
export function groupThousands(number: string): string {
  const [whole = "", ...fraction] = number.split(".");
  return [whole.replace(/\B(?=([0-9]{3})+$)/g, ","), ...fraction].join(".");
}

/** How much one amount is of another, near enough to draw or to compare. The second is not 0. */
export function toRatio(part: bigint, whole: bigint): number {
  const scale = 10n ** 15n;
  return Number((part * scale) / whole) / Number(scale);
}
