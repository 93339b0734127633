import { providers } from "ethers";
import { RevertError } from "../../chain/json-rpc/revert-error.js";

/** Sends one JSON-RPC call; throws RevertError for a revert. */
export type SendRpc = (method: string, params: readonly unknown[]) => Promise<unknown>;

/**
 * An ethers provider whose calls go through our own RPC client. Ethers' own fetching is never used: it unpacks
 * compressed answers without a bound and puts the endpoint's URL into error texts.
 */
export class SdkProvider extends providers.StaticJsonRpcProvider {
  readonly #send: SendRpc;

  constructor(chain: { readonly slug: string; readonly chainId: number }, send: SendRpc) {
    // The address is a label only. With the network given, ethers does not ask for it; the name must be none of those
    // that ethers knows, since it insists on the mainnet ids of its own.
    super(`hop-gateway://${chain.slug}`, { chainId: chain.chainId, name: `hop-${chain.slug}` });
    this.#send = send;
  }

  override async send(method: string, params: unknown[]): Promise<unknown> {
    try {
      return await this.#send(method, params);
    } catch (error) {
      // The form in which ethers' own client passes a node's error on. The node's text stays behind: the SDK looks for
      // words in it with expressions that a long text brings to a standstill.
      if (error instanceof RevertError) throw Object.assign(new Error("execution reverted"), { code: error.code });
      throw error;
    }
  }
}
