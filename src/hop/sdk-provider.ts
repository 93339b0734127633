import { providers } from "ethers";
import { RevertError } from "../chain/rpc-error.js";

/** Sends one JSON-RPC call; throws RevertError for a revert. */
export type Send = (method: string, params: readonly unknown[]) => Promise<unknown>;

/**
 * An ethers provider whose calls go through our own RPC client. Ethers' own fetching is never used: it unpacks
 * compressed answers without a bound and puts the endpoint's URL into error texts.
 */
export class SdkProvider extends providers.StaticJsonRpcProvider {
  readonly #send: Send;

  constructor(chain: { readonly slug: string; readonly chainId: number }, send: Send) {
    // The address is a label only. With the network given, ethers does not ask for it.
    super(`hop-gateway://${chain.slug}`, { chainId: chain.chainId, name: chain.slug });
    this.#send = send;
  }

  override async send(method: string, params: unknown[]): Promise<unknown> {
    try {
      return await this.#send(method, params);
    } catch (error) {
      // The form in which ethers' own client passes a node's error on, and from which it reads revert data.
      if (error instanceof RevertError)
        throw Object.assign(new Error(error.message), { code: error.code, data: error.data });
      throw error;
    }
  }
}
