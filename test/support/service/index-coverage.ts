import { expect, vi } from "vitest";
import type { TestGateway } from "./in-process-gateway.js";

const ANY_ACCOUNT = `0x${"11".repeat(20)}`;

/** Resolves when the index of a service has read all blocks that the chains have now. */
export async function waitUntilIndexed(
  gateway: Pick<TestGateway, "get">,
  chains: Readonly<Record<string, { readonly url: string }>>,
): Promise<void> {
  const urls = Object.values(chains).map(({ url }) => url);
  const [first, newest] = await Promise.all(
    ["0x1", "latest"].map((block) => Promise.all(urls.map((url) => readBlockTime(url, block)))),
  );
  await vi.waitFor(
    async () => {
      const { body } = await gateway.get(`/v1/transfers?account=${ANY_ACCOUNT}&pageSize=1`);
      const { coveredFrom, coveredUntil } = body as { readonly coveredFrom: number; readonly coveredUntil: number };
      // A complete history begins in the first block of a chain, or in that of its first contract, which may be 1.
      expect(coveredFrom).toBeLessThanOrEqual(Math.max(...(first ?? [])));
      expect(coveredUntil).toBeGreaterThanOrEqual(Math.min(...(newest ?? [])));
    },
    { timeout: 60_000, interval: 200 },
  );
}

/** Returns the time of a block in Unix seconds. */
async function readBlockTime(url: string, block: string): Promise<number> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getBlockByNumber", params: [block, false] });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const { result } = (await response.json()) as { readonly result: { readonly timestamp: string } };
  return Number(result.timestamp);
}
