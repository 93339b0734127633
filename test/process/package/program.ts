import {
  createBridgeClient,
  type ErrorReason,
  getErrorDetails,
  listTransfers,
  type Route,
  type WatchEvent,
  watchTransfers,
} from "hop-gateway/client";
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

/** Returns why the service gives nothing of an iterable. */
async function findReason(iterable: AsyncIterable<unknown>): Promise<ErrorReason | undefined> {
  try {
    for await (const item of iterable) throw new Error(`unexpected: ${JSON.stringify(item)}`);
  } catch (error) {
    return getErrorDetails(error)?.reason;
  }
  return undefined;
}

const watch: AsyncIterable<WatchEvent> = watchTransfers(bridge, { transferHash: ["0x"] });
const account = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

process.stdout.write(
  JSON.stringify([
    first?.destinationChainSlug,
    restRoute?.destinationChainSlug,
    reason,
    await findReason(watch),
    await findReason(listTransfers(bridge, { account })),
    description.openapi,
  ]),
);
