import type { ChainClient } from "../../../../src/chain/chain-client.js";
import {
  type CustomEndpointCaller,
  CustomEndpoints,
  type CustomEndpointsOptions,
} from "../../../../src/chain/custom-endpoints/custom-endpoints.js";

/** Creates custom endpoints that are opened in a session of their own each. */
export function createSingleEndpoints(
  options: Partial<CustomEndpointsOptions> & Pick<CustomEndpointsOptions, "policy">,
) {
  const custom = new CustomEndpoints({ onFailure: () => {}, ...options });
  return {
    async open(
      chain: Parameters<ReturnType<CustomEndpoints["startSession"]>["open"]>[0],
      url: string,
      caller: CustomEndpointCaller,
    ): Promise<{ client: ChainClient; close(): Promise<void> }> {
      const session = custom.startSession(caller);
      try {
        return { client: await session.open(chain, url), close: () => session.close() };
      } catch (error) {
        await session.close();
        throw error;
      }
    },
  };
}
