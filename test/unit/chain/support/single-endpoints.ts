import type { ChainClient } from "../../../../src/chain/chain-client.js";
import {
  CustomEndpoints,
  type CustomEndpointsOptions,
} from "../../../../src/chain/custom-endpoints/custom-endpoints.js";
import type { Requester } from "../../../../src/resilience/waiters.js";

/** Creates custom endpoints that are opened in a session of their own each. */
export function createSingleEndpoints(
  options: Partial<CustomEndpointsOptions> & Pick<CustomEndpointsOptions, "policy">,
) {
  const custom = new CustomEndpoints({ onFailure: () => {}, ...options });
  return {
    async open(
      chain: Parameters<ReturnType<CustomEndpoints["startSession"]>["open"]>[0],
      url: string,
      requester: Requester,
    ): Promise<{ client: ChainClient; close(): Promise<void> }> {
      const session = custom.startSession(requester);
      try {
        return { client: await session.open(chain, url), close: () => session.close() };
      } catch (error) {
        await session.close();
        throw error;
      }
    },
  };
}
