import type { Config } from "../../config/config.js";
import type { Logger } from "../../observability/log.js";

/** Logs what an operator should know about the configuration. For the process that the operator started: workers repeat it. */
export function logStartupWarnings({ customRpcUrlPolicy, sharedState, sharedStateKey }: Config, logger: Logger): void {
  if (sharedState !== undefined && sharedState.password === undefined && sharedStateKey === undefined)
    logger.warn("SHARED_STATE has no password and there is no SHARED_STATE_KEY: who reaches Redis can forge answers");
  if (customRpcUrlPolicy !== "any") return;
  // Answers allow every origin (CORS), and a request without a preflight is sent even where its answer may not be read.
  const risk =
    "CUSTOM_RPC_URLS=any: every caller can make this service call any address on its network, and so can any web page " +
    "that is open in a browser which reaches the service; for development only";
  logger.warn(risk);
}
