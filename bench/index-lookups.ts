import { randomBytes } from "node:crypto";
import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getNetwork } from "../src/hop/networks.js";
import { openIndex } from "../src/transfers/index/store/open-index.js";
import { createTransferLister } from "../src/transfers/list/transfer-lister.js";
import { createIndexLookup } from "../src/transfers/sources/index-source.js";
import type { LookupContext } from "../src/transfers/sources/transfer-source.js";
import { createSyntheticIndex } from "./support/synthetic-index.js";

// Measures the size of an index of a million transfers (a send and a delivery each) and the latency of look-ups and lists in it.

const ROWS = 2_000_000;
const network = getNetwork("mainnet");
const LOOKUPS = 50_000;
const PAGES = 2_000;

function measure(
  name: string,
  keys: readonly string[],
  find: (key: string) => readonly unknown[],
  runs = LOOKUPS,
): void {
  const times: number[] = [];
  let found = 0;
  for (let count = 0; count < runs; count++) {
    const key = keys[Math.floor(Math.random() * keys.length)] ?? "";
    const began = performance.now();
    found += find(key).length;
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

  const { reader, close } = await openIndex(file, network);
  for (const pass of ["first pass", "second pass"]) {
    measure(`by transfer ID, ${pass}`, transferIds, reader.findByTransferId);
    measure(`by transaction hash, sent or delivered, ${pass}`, transactionHashes, reader.findByTransactionHash);
  }
  const source = createIndexLookup({
    getIndex: () => reader,
    network,
    getPollIntervalMs: () => 2_000,
    now: () => 0,
  });
  const context: LookupContext = {
    network,
    chains: {
      hasCustomEndpoint: () => false,
      getClient: (slug) => {
        throw new Error(`unexpected request to ${slug}`);
      },
    },
    caller: "",
    remainingMs: () => 1_000,
    signal: new AbortController().signal,
  };
  measure("status by transfer ID", transferIds, (id) => [
    source.findKnownStatus({ transferId: id, transactionHash: undefined }, context),
  ]);
  measure("status by transaction hash", transactionHashes, (hash) => [
    source.findKnownStatus({ transferId: undefined, transactionHash: hash }, context),
  ]);
  const lister = createTransferLister({ readIndex: (query) => query(reader), network, now: Date.now });
  const any = { state: undefined, token: undefined, source: undefined, destination: undefined };
  const caller = { caller: "", signal: context.signal };
  for (const pass of ["first pass", "second pass"])
    measure(
      `page of 50 by account, ${pass}`,
      accounts,
      (account) => {
        const list = lister.list({ account, ...any }, undefined, 50, caller);
        return "transfers" in list ? list.transfers : [];
      },
      PAGES,
    );
  const unknown = Array.from({ length: 1_000 }, () => `0x${randomBytes(32).toString("hex")}`);
  measure("by an unknown transaction hash", unknown, reader.findByTransactionHash);
  close();
} finally {
  await rm(folder, { recursive: true, force: true });
}
