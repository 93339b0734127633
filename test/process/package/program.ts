import { type ErrorReason, getErrorDetails, type Route } from "hop-gateway/client";
import { createBridgeClient } from "hop-gateway/node-client";
import type { components } from "hop-gateway/openapi";
import description from "hop-gateway/openapi.json" with { type: "json" };

// Program of a user of the package: uses all its exports to send requests that need no chain to the service at argv[2].

const baseUrl = process.argv[2] ?? "";
const bridge = createBridgeClient(baseUrl);

const { routes } = await bridge.listAvailableRoutes({ token: "SNX", fromChain: "optimism" });
const first: Route | undefined = routes[0];
const response = await fetch(`${baseUrl}/v1/available-routes?token=SNX&fromChain=optimism`);
const [restRoute] = (await response.json()) as components["schemas"]["Route"][];
const failure: unknown = await bridge.getQuote({}).catch((error: unknown) => error);
const reason: ErrorReason | undefined = getErrorDetails(failure)?.reason;

process.stdout.write(
  JSON.stringify([first?.destinationChainSlug, restRoute?.destinationChainSlug, reason, description.openapi]),
);
