import { expect, test } from "vitest";
import { createResumableLogScanner } from "../../../../../src/transfers/sources/chain/resumable-log-scanner.js";
import { findBlockAfter } from "../../../../../src/transfers/sources/chain/search-caches.js";
import { createSearchedBlocks } from "../../../../../src/transfers/sources/chain/searched-blocks.js";
import { createLookupContext, getChain } from "../../../../support/stubs/transfer-fixtures.js";

test("a block after a time is after it also where the clocks of two chains differ by ten minutes", async () => {
  // Four blocks per second, and estimates that are a thousand blocks too low.
  const blockTimes = { findBlockAt: async (_: unknown, timestamp: number) => timestamp * 4 - 1_000 };
  const caches = {
    blockTimes,
    logScanner: createResumableLogScanner(new AbortController().signal, () => 0),
    searchedBlocks: createSearchedBlocks(() => 0),
  };
  const block = await findBlockAfter(getChain("arbitrum"), 1_700_000_000, caches, createLookupContext());
  expect(block).toBeGreaterThanOrEqual((1_700_000_000 + 600) * 4);
});
