import type { ChainClient } from "../../../../src/chain/chain-client.js";
import {
  type CustomEndpointsOptions,
  type CustomEndpointTarget,
  createCustomEndpoints,
  type EndpointCaller,
} from "../../../../src/chain/custom-endpoints/custom-endpoints.js";

/** Creates custom endpoints that are opened in a session of their own each. */
export function createSingleEndpoints(
  options: Partial<CustomEndpointsOptions> & Pick<CustomEndpointsOptions, "policy">,
) {
  const custom = createCustomEndpoints({ onFailure: () => {}, ...options });
  return {
    async open(
      chain: CustomEndpointTarget,
      url: string,
      caller: EndpointCaller,
    ): Promise<{ client: ChainClient; close(): Promise<void> }> {
      const session = custom.startSession(caller);
      try {
        return { client: await session.open(chain, url), close: session.close };
      } catch (error) {
        await session.close();
        throw error;
      }
    },
  };
}
