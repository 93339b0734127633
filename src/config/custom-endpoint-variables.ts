import { DEFAULT_CUSTOM_ENDPOINT_LIMITS } from "../chain/custom-endpoints/custom-endpoints.js";
import { type CustomUrlPolicy, DEFAULT_CUSTOM_URL_PORTS } from "../chain/custom-endpoints/ssrf-guard.js";
import { createChoiceVariable, createIntegerVariable, createVariable } from "./environment-variable.js";
import { parsePorts } from "./value-parsers.js";

const CUSTOM_URL_POLICIES = ["public", "any", "off"] as const satisfies readonly CustomUrlPolicy[];

/** The part of the environment table about RPC endpoints that callers name. */
export const customEndpointVariables = {
  customRpcUrlPolicy: createChoiceVariable(
    {
      name: "CUSTOM_RPC_URLS",
      defaultValue: "public",
      description:
        "RPC endpoints that callers may name with `rpcUrl[...]`: `public` (https and a public host), `any` (for development: any web page could then make the service call addresses on its network), `off`",
    },
    CUSTOM_URL_POLICIES,
  ),
  customRpcPorts: createVariable(
    {
      name: "CUSTOM_RPC_PORTS",
      defaultValue: DEFAULT_CUSTOM_URL_PORTS,
      defaultText: `\`${DEFAULT_CUSTOM_URL_PORTS.join(",")}\``,
      description: "ports that such a `public` endpoint may use, comma-separated",
    },
    "a comma-separated list of ports",
    parsePorts,
  ),
  customRpcMaxPerCaller: createIntegerVariable(
    {
      name: "CUSTOM_RPC_MAX_PER_CALLER",
      defaultValue: DEFAULT_CUSTOM_ENDPOINT_LIMITS.perCaller,
      description: "endpoints that one caller may have in use with `rpcUrl[...]`; one call names up to nine",
    },
    { min: 1, max: 10_000 },
  ),
  customRpcMaxEndpoints: createIntegerVariable(
    {
      name: "CUSTOM_RPC_MAX_ENDPOINTS",
      defaultValue: DEFAULT_CUSTOM_ENDPOINT_LIMITS.total,
      description: "such endpoints in use of all callers together",
    },
    { min: 1, max: 10_000 },
  ),
};
