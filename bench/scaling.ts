import { ASSUMED, type Load, printBills } from "./support/scaling-model.js";

// Computes what a load takes, from the inputs in support/scaling-model.ts:
//   QUOTES_PER_SECOND=2500 WATCHERS=20000 TRANSFERS_PER_DAY=5000 npm run bench:scaling

const NAMES: Readonly<Record<keyof Load, string>> = {
  quotesPerSecond: "QUOTES_PER_SECOND",
  watchers: "WATCHERS",
  statusesPerQuote: "STATUSES_PER_QUOTE",
  uncachedShare: "UNCACHED_SHARE",
  unindexedShare: "UNINDEXED_SHARE",
  transfersPerDay: "TRANSFERS_PER_DAY",
  years: "YEARS",
  utilization: "UTILIZATION",
};

const load: Load = { quotesPerSecond: 1_000, watchers: 0, ...ASSUMED };
const given = Object.entries(NAMES).flatMap(([key, name]) => {
  const text = process.env[name];
  return text === undefined ? [] : [[key, Number(text)] as const];
});
console.log(printBills([["this load", { ...load, ...Object.fromEntries(given) }]]));
