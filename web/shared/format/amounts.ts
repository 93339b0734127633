/** An amount that cannot be parsed. The message is shown to the user. */
export class AmountError extends Error {}

/**
 * Parses an amount in whole tokens into the token's smallest unit. Exact: never uses floating-point numbers.
 * @param text digits with an optional point before the fraction, such as `0.5`
 * @param decimals decimals of the token
 * @throws AmountError
 */
export function parseAmount(text: string, decimals: number): bigint {
  const trimmed = text.trim();
  if (trimmed === "") throw new AmountError("Enter an amount.");
  const [, whole = "", fraction = ""] = /^([0-9]*)(?:\.([0-9]*))?$/.exec(trimmed) ?? [];
  if (whole + fraction === "") {
    throw new AmountError("Use plain digits with a point before the fraction: 1234.5");
  }
  const significant = fraction.replace(/0+$/, "");
  if (significant.length > decimals) {
    const limit = decimals === 0 ? "no decimals" : `at most ${decimals} decimals`;
    throw new AmountError(`This token has ${limit}; the amount has ${significant.length}.`);
  }
  return BigInt(whole + significant.padEnd(decimals, "0"));
}

/**
 * Formats an amount in whole tokens, with all significant digits and no trailing zeros.
 * @param raw in the token's smallest unit, not negative
 */
export function formatAmount(raw: bigint, decimals: number): string {
  const digits = raw.toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  return fraction === "" ? whole : `${whole}.${fraction}`;
}

/** Inserts commas between the thousands of a plain decimal number. */
export function groupThousands(number: string): string {
  const [whole = "", ...fraction] = number.split(".");
  return [whole.replace(/\B(?=([0-9]{3})+$)/g, ","), ...fraction].join(".");
}

/** Returns `part / whole` with 15 decimals: precise enough to draw and to compare. `whole` must not be 0. */
export function toRatio(part: bigint, whole: bigint): number {
  const scale = 10n ** 15n;
  return Number((part * scale) / whole) / Number(scale);
}

/** Formats a share in percent with two to three significant digits: 0.01 is `1 %`. */
export function formatPercent(share: number): string {
  const percent = share * 100;
  const digits = Number.isInteger(percent) ? 0 : Math.abs(percent) >= 10 ? 1 : Math.abs(percent) >= 0.1 ? 2 : 3;
  const text = percent.toFixed(digits);
  return `${Number(text) === 0 ? "0" : text.replace("-", "−")} %`;
}

/** Formats US dollars with two decimals: `$1,234.50`. Sums that nobody has are short: `$1.2e+71`. */
export function formatUsd(dollars: number): string {
  if (dollars >= 1e15) return `$${dollars.toExponential(1)}`;
  if (dollars > 0 && dollars < 0.01) return "< $0.01";
  return dollars.toLocaleString("en", { style: "currency", currency: "USD" });
}

/** Returns how much of a token is worth a sum, in its smallest unit; at least 1. @param tokenUsd above 0 */
export function convertFromUsd(dollars: number, tokenUsd: number, decimals: number): bigint {
  const amount = parseAmount((dollars / tokenUsd).toFixed(Math.min(decimals, 6)), decimals);
  return amount === 0n ? 1n : amount;
}
