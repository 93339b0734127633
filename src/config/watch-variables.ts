import { createIntegerVariable } from "./environment-variable.js";

/** Variables of watches of transfers. */
export const watchVariables = {
  watchMaxSeconds: createIntegerVariable(
    {
      name: "WATCH_MAX_SECONDS",
      defaultValue: 3600,
      description: "longest life of a watch in seconds; it then ends so that the caller resumes it",
    },
    { min: 1, max: 604_800 },
  ),
  /** 0: no limit. */
  watchMaxStreams: createIntegerVariable(
    { name: "WATCH_MAX_STREAMS", defaultValue: 20_000, description: "open watches of each process; `0`: no limit" },
    { min: 0, max: 1_000_000 },
  ),
  /** 0: no limit. */
  watchMaxPerCaller: createIntegerVariable(
    {
      name: "WATCH_MAX_PER_CALLER",
      defaultValue: 1000,
      description: "open watches of one caller in each process; `0`: no limit",
    },
    { min: 0, max: 1_000_000 },
  ),
};
