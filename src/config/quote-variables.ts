import { createChoiceVariable, createIntegerVariable, createVariable } from "./environment-variable.js";

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
  /** Share of quotes that are compared with the SDK's quote, 0 to 1. */
  quoteVerifyRate: createVariable(
    {
      name: "QUOTE_VERIFY_RATE",
      defaultValue: 0,
      description:
        "share of quotes (`0` to `1`) that are compared with the SDK's quote on the same blocks after they are served; differences are logged",
    },
    "a number from 0 to 1",
    (text) => (/^(?:0|1|0?\.[0-9]{1,9}|1\.0+)$/.test(text) ? { value: Number(text) } : undefined),
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
};
