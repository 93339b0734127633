import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions, Client } from "@connectrpc/connect";
import type {
  BridgeService,
  GetTransferStatusResponse,
  ListTransfersRequestSchema,
  ListTransfersResponse,
} from "../../gen/hop/bridge/v1/bridge_pb.js";

/** Of each call: one for each page. */
export interface ListTransfersOptions extends Pick<CallOptions, "signal" | "headers" | "timeoutMs"> {
  /** Called with each page before its transfers: `coveredFrom` and `coveredUntil` tell between which times they are complete. */
  readonly onPage?: ((page: ListTransfersResponse) => void) | undefined;
}

/**
 * Returns the transfers of an account, newest first, from all pages; the next page is requested when it is needed.
 * `pageToken` of the request is where to begin. Throws what the client throws for a page.
 *
 * @example
 * for await (const { transferId } of listTransfers(bridge, { account, state: "PENDING" })) console.log(transferId);
 */
export async function* listTransfers(
  client: Pick<Client<typeof BridgeService>, "listTransfers">,
  request: MessageInitShape<typeof ListTransfersRequestSchema>,
  { onPage, ...options }: ListTransfersOptions = {},
): AsyncGenerator<GetTransferStatusResponse, void, undefined> {
  for (let { pageToken = "" } = request; ; ) {
    const page = await client.listTransfers({ ...request, pageToken }, options);
    onPage?.(page);
    yield* page.transfers;
    if (page.nextPageToken === "") return;
    pageToken = page.nextPageToken;
  }
}
