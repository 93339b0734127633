import { createChoiceVariable, createIntegerVariable } from "./environment-variable.js";

const QUOTE_ENGINES = ["snapshot", "sdk"] as const;

/** The part of the environment table about quotes. */
export const quoteVariables = {
  quoteEngine: createChoiceVariable(
    {
      name: "QUOTE_ENGINE",
      defaultValue: "snapshot",
      description:
        "`snapshot`: compute quotes from cached chain state; `sdk`: compute every quote with the SDK, slowly",
    },
    QUOTE_ENGINES,
  ),
  /** Time between two comparisons with the SDK's quote; 0: none. */
  quoteVerifyIntervalSeconds: createIntegerVariable(
    {
      name: "QUOTE_VERIFY_INTERVAL_SECONDS",
      defaultValue: 600,
      description:
        "time between two comparisons of a quote with the SDK's on the same blocks, in a process of its own that ends after some seconds, one for all workers and replicas; a difference raises an alert. `0`: none",
    },
    { min: 0, max: 86_400 },
  ),
  /** undefined: two blocks of the slower chain, at least 4 s. */
  quoteMaxAgeMs: createIntegerVariable(
    {
      name: "QUOTE_MAX_AGE_MS",
      defaultValue: undefined,
      defaultText: "two blocks of the slower chain, at least `4000`",
      description: "maximum age of a quote's chain state in milliseconds while the chains respond",
    },
    { min: 1, max: 600_000 },
  ),
  quoteMaxStaleMs: createIntegerVariable(
    {
      name: "QUOTE_MAX_STALE_MS",
      defaultValue: 30_000,
      description: "maximum age in milliseconds while a chain does not respond; beyond it, quotes are refused",
    },
    { min: 1, max: 600_000 },
  ),
  /** undefined: by the block time of each chain. */
  maxBlockAgeMs: createIntegerVariable(
    {
      name: "MAX_BLOCK_AGE_MS",
      defaultValue: undefined,
      defaultText: "20 blocks of the chain, at least `120000`; `900000` on arbitrum, nova and polygonzk",
      description:
        "age of a chain's newest block in milliseconds beyond which the chain stands still: quotes on its routes are refused; `0`: no limit. Goerli has none",
    },
    { min: 0, max: 24 * 60 * 60_000 },
  ),
};
