import { providers } from "ethers";
import { RevertError } from "../../chain/json-rpc/revert-error.js";

/** Sends one JSON-RPC call. @throws RevertError for a revert. */
export type SendRpc = (method: string, params: readonly unknown[]) => Promise<unknown>;

/**
 * An ethers provider that sends its calls through this service's RPC client. The HTTP client of ethers is never used: it
 * decompresses responses without a limit and puts the endpoint's URL into error messages.
 */
export class SdkProvider extends providers.StaticJsonRpcProvider {
  readonly #send: SendRpc;

  constructor(chain: { readonly slug: string; readonly chainId: number }, send: SendRpc) {
    // The URL is only a label. Given a network, ethers does not request the chain id. The name must be unknown to ethers,
    // which otherwise insists on its own chain id for that name.
    super(`hop-gateway://${chain.slug}`, { chainId: chain.chainId, name: `hop-${chain.slug}` });
    this.#send = send;
  }

  override async send(method: string, params: unknown[]): Promise<unknown> {
    try {
      return await this.#send(method, params);
    } catch (error) {
      // The error format of ethers' own client, without the node's message: the SDK searches it with regular expressions
      // that a long message can stall (ReDoS).
      if (error instanceof RevertError) throw Object.assign(new Error("execution reverted"), { code: error.code });
      throw error;
    }
  }
}
