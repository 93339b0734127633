import {
  createBridgeClient,
  type ErrorReason,
  getErrorDetails,
  listTransfers,
  type WatchEvent,
  watchTransfers,
} from "hop-gateway-client";
import type { components } from "hop-gateway-client/openapi";

// Program of a user of the client's package, in Node.js and in browsers.

/** Sends requests that need no chain, and returns what became of them. */
export async function runClient(baseUrl: string): Promise<(string | undefined)[]> {
  const bridge = createBridgeClient(baseUrl);
  // A list of all routes is long enough to be compressed.
  const { routes } = await bridge.listAvailableRoutes({});
  const route: Pick<components["schemas"]["Route"], "token"> | undefined = routes.find(({ token }) => token === "SNX");
  const watch: AsyncIterable<WatchEvent> = watchTransfers(bridge, { transferHash: ["0x"] });
  const account = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
  return [
    route?.token,
    await bridge.getQuote({}).then(() => undefined, findReason),
    await readAll(listTransfers(bridge, { account })),
    await readAll(watch),
  ];
}

function findReason(error: unknown): ErrorReason | undefined {
  return getErrorDetails(error)?.reason;
}

/** Returns why the service gives nothing of an iterable. */
async function readAll(iterable: AsyncIterable<unknown>): Promise<ErrorReason | undefined> {
  try {
    for await (const item of iterable) throw new Error(`unexpected: ${JSON.stringify(item)}`);
  } catch (error) {
    return findReason(error);
  }
  return undefined;
}
