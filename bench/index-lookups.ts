import { randomBytes } from "node:crypto";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getNetwork } from "../src/hop/networks.js";
import { isPromise, type MaybePromise, mapMaybeAsync } from "../src/resilience/maybe-async.js";
import { TransferLister } from "../src/transfers/index/list/transfer-lister.js";
import { openTransferIndex } from "../src/transfers/index/transfer-index.js";
import { IndexLookup } from "../src/transfers/sources/index-lookup.js";
import type { LookupContext } from "../src/transfers/sources/transfer-source.js";
import { createSyntheticIndex } from "./support/synthetic-index.js";

// Measures the size of an index of a million transfers (a send and a delivery each) and the latency of look-ups and lists in it.

const ROWS = 2_000_000;
const network = getNetwork("mainnet");
const LOOKUPS = 50_000;
const PAGES = 2_000;

const toList = (status: MaybePromise<unknown>): MaybePromise<readonly unknown[]> =>
  mapMaybeAsync(status, (found) => [found]);

async function measure(
  name: string,
  keys: readonly string[],
  find: (key: string) => MaybePromise<readonly unknown[]>,
  runs = LOOKUPS,
): Promise<void> {
  const times: number[] = [];
  let found = 0;
  for (let count = 0; count < runs; count++) {
    const key = keys[Math.floor(Math.random() * keys.length)] ?? "";
    const began = performance.now();
    const result = find(key);
    found += (isPromise(result) ? await result : result).length;
    times.push((performance.now() - began) * 1_000);
  }
  times.sort((a, b) => a - b);
  const quantile = (share: number): string => (times[Math.floor(times.length * share)] ?? 0).toFixed(1);
  console.log(`  ${name}: ${quantile(0.5)} us (median), ${quantile(0.99)} us (p99), ${found} found in ${runs} runs`);
}

const folder = await mkdtemp(join(tmpdir(), "hop-index-"));
try {
  const file = join(folder, "index");
  const startedAt = performance.now();
  const { transferIds, transactionHashes, accounts } = await createSyntheticIndex(file, ROWS / 2);
  const seconds = (performance.now() - startedAt) / 1_000;
  const { size } = await stat(file);
  console.log(
    `${ROWS} rows, written in ${seconds.toFixed(1)} s; ${(size / 1e6).toFixed(0)} MB, ${Math.round(size / ROWS)} bytes a row`,
  );

  const index = await openTransferIndex({ kind: "sqlite", file }, network);
  const { reader } = index;
  for (const pass of ["first pass", "second pass"]) {
    await measure(`by transfer ID, ${pass}`, transferIds, (id) => reader.findByTransferId(id));
    await measure(`by transaction hash, sent or delivered, ${pass}`, transactionHashes, (hash) =>
      reader.findByTransactionHash(hash),
    );
  }
  const lookup = new IndexLookup(index, network, () => 0);
  const context: LookupContext = {
    network,
    chains: {
      hasCustomEndpoint: () => false,
      getClient: (slug) => {
        throw new Error(`unexpected request to ${slug}`);
      },
    },
    isPrivate: false,
    caller: "",
    remainingMs: () => 1_000,
    signal: new AbortController().signal,
  };
  await measure("status by transfer ID", transferIds, (id) =>
    toList(lookup.findKnownStatus({ transferId: id, transactionHash: undefined }, context)),
  );
  await measure("status by transaction hash", transactionHashes, (hash) =>
    toList(lookup.findKnownStatus({ transferId: undefined, transactionHash: hash }, context)),
  );
  const lister = new TransferLister(index, network);
  const any = { state: undefined, token: undefined, source: undefined, destination: undefined };
  const caller = { caller: "", signal: context.signal };
  for (const pass of ["first pass", "second pass"])
    await measure(
      `page of 50 by account, ${pass}`,
      accounts,
      (account) => mapMaybeAsync(lister.list({ account, ...any }, undefined, 50, caller), ({ transfers }) => transfers),
      PAGES,
    );
  const sent = new Map(
    await Promise.all(
      transferIds.slice(0, PAGES).map(async (id) => [id, (await reader.findByTransferId(id))[0]?.sent] as const),
    ),
  );
  const readTree = async (id: string) => {
    const query = sent.get(id);
    return (query && (await reader.readTree(query))?.leaves) ?? [];
  };
  await measure("tree of 1,000 transfers, by one of them", [...sent.keys()], readTree, PAGES);
  const unknown = Array.from({ length: 1_000 }, () => `0x${randomBytes(32).toString("hex")}`);
  await measure("by an unknown transaction hash", unknown, (hash) => reader.findByTransactionHash(hash));
  await index.close();
} finally {
  await rm(folder, { recursive: true, force: true });
}
