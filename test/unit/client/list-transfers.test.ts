import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import {
  BridgeService,
  type ListTransfersRequest,
  type ListTransfersResponse,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { listTransfers } from "../../../src/client.js";

const PAGES: Readonly<Record<string, { readonly transferIds: readonly string[]; readonly nextPageToken: string }>> = {
  "": { transferIds: ["a", "b"], nextPageToken: "2" },
  // A filter may leave nothing of a page that is not the last.
  2: { transferIds: [], nextPageToken: "3" },
  3: { transferIds: ["c"], nextPageToken: "" },
};

function createPages() {
  const requests: ListTransfersRequest[] = [];
  const transport = createRouterTransport(({ rpc }) => {
    rpc(BridgeService.method.listTransfers, (request) => {
      requests.push(request);
      const page = PAGES[request.pageToken];
      if (page === undefined) throw new ConnectError("no such page", Code.InvalidArgument);
      return {
        transfers: page.transferIds.map((transferId) => ({ transferId })),
        nextPageToken: page.nextPageToken,
        coveredUntil: BigInt(page.transferIds.length),
      };
    });
  });
  return { client: createClient(BridgeService, transport), requests };
}

async function collect(iterable: ReturnType<typeof listTransfers>): Promise<string[]> {
  const ids: string[] = [];
  for await (const { transferId } of iterable) ids.push(transferId);
  return ids;
}

test("returns the transfers of all pages, with the same filters", async () => {
  const { client, requests } = createPages();
  const listed = listTransfers(client, { account: "0x1", state: "PENDING", pageSize: 2 });
  expect(await collect(listed)).toEqual(["a", "b", "c"]);
  expect(requests.map(({ account, state, pageSize, pageToken }) => [account, state, pageSize, pageToken])).toEqual([
    ["0x1", "PENDING", 2, ""],
    ["0x1", "PENDING", 2, "2"],
    ["0x1", "PENDING", 2, "3"],
  ]);
});

test("tells of each page before its transfers", async () => {
  const { client } = createPages();
  const told: unknown[] = [];
  const onPage = ({ coveredUntil }: ListTransfersResponse) => told.push(coveredUntil);
  for await (const { transferId } of listTransfers(client, { account: "0x1" }, { onPage })) told.push(transferId);
  expect(told).toEqual([2n, "a", "b", 0n, 1n, "c"]);
});

test("begins at a given page", async () => {
  const { client } = createPages();
  expect(await collect(listTransfers(client, { account: "0x1", pageToken: "3" }))).toEqual(["c"]);
});

test("requests no further page when the loop is left", async () => {
  const { client, requests } = createPages();
  for await (const { transferId } of listTransfers(client, { account: "0x1" })) if (transferId === "b") break;
  expect(requests).toHaveLength(1);
});

test("throws the error of a page, and ends with its signal", async () => {
  const { client } = createPages();
  await expect(collect(listTransfers(client, { account: "0x1", pageToken: "x" }))).rejects.toMatchObject({
    code: Code.InvalidArgument,
  });
  const signal = AbortSignal.abort();
  await expect(collect(listTransfers(client, { account: "0x1" }, { signal }))).rejects.toMatchObject({
    code: Code.Canceled,
  });
});
