import fc from "fast-check";
import { expect, test } from "vitest";
import { hexToBytes } from "../../src/chain/hex.js";
import type { SendRow } from "../../src/transfers/index/database/schema.js";
import { openIndex } from "../support/index/open-index.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";
import { ACCOUNT, createIndexWriter, createListHarness } from "../unit/transfers/index/list/list-harness.js";
import { hashFromName } from "../unit/transfers/index/support/hop-events.js";
import {
  ARBITRUM_CHAIN_ID,
  bytesFromName,
  createDeliveryRow,
  createSendRow,
  OPTIMISM_CHAIN_ID,
} from "../unit/transfers/index/support/index-rows.js";

// Lists are read page by page while the index changes, and compared with a model of it.

const folder = useTemporaryFolder();
let files = 0;

/** What happens to the index between two pages. */
const operations = fc.oneof(
  fc.record({ kind: fc.constant("send" as const), count: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ kind: fc.constant("backfill" as const), count: fc.integer({ min: 1, max: 8 }) }),
  fc.record({ kind: fc.constant("deliver" as const), count: fc.integer({ min: 1, max: 8 }) }),
  fc.record({
    kind: fc.constant("reorg" as const),
    depth: fc.integer({ min: 1, max: 12 }),
    /** By how much the order of the transfers and the times of the blocks change. */
    rotation: fc.nat(20),
    delaySeconds: fc.integer({ min: -20, max: 20 }),
  }),
  fc.record({ kind: fc.constant("finalize" as const), depth: fc.integer({ min: 0, max: 6 }) }),
);

async function createModel() {
  const index = await openIndex(`${folder()}/index-${files++}`);
  const writer = createIndexWriter(index);
  await writer.initialize([OPTIMISM_CHAIN_ID], 1_000);
  await writer.initialize([ARBITRUM_CHAIN_ID], 1);
  const own = hexToBytes(ACCOUNT);
  /** Indexed sends by name. */
  const sends = new Map<string, SendRow>();
  let head = 1_000;
  let start = 1_001;
  let final = 1_000;
  let arbitrumHead = 1;

  const create = (name: string, block: number, log: number, timestamp = 1_700_000_000 + 2 * block): SendRow => {
    const side = name.length % 2 === 0 ? { account: own } : { recipient: own };
    // Two transfers of one transaction have one hash.
    const transaction = `sends ${Math.floor(Number(name) / 2)}`;
    return createSendRow(bytesFromName(name), transaction, { ...side, block_number: block, log_index: log, timestamp });
  };

  return {
    index,
    names: () => new Set([...sends.keys()].map(hashFromName)),
    async send(count: number): Promise<void> {
      head += 1;
      const added = Array.from({ length: count }, (_, log) => [`${sends.size + log}`, log] as const);
      for (const [name, log] of added) sends.set(name, create(name, head, log));
      const rows = added.flatMap(([name]) => sends.get(name) ?? []);
      await writer.advance(OPTIMISM_CHAIN_ID, head, { sends: rows });
    },
    async backfill(count: number): Promise<void> {
      start -= 1;
      const added = Array.from({ length: count }, (_, log) => [`${sends.size + log}`, log] as const);
      for (const [name, log] of added) sends.set(name, create(name, start, log));
      await writer.prepend(OPTIMISM_CHAIN_ID, start, { sends: added.flatMap(([name]) => sends.get(name) ?? []) });
    },
    async deliver(count: number): Promise<void> {
      arbitrumHead += 1;
      const names = [...sends.keys()].slice(-count);
      const deliveries = names.map((name) => createDeliveryRow(bytesFromName(name), `bonds ${name}`, arbitrumHead));
      await writer.advance(ARBITRUM_CHAIN_ID, arbitrumHead, { deliveries });
    },
    /** Replaces blocks that are not final by others with the same transfers in another order. */
    async reorg(depth: number, rotation: number, delaySeconds: number): Promise<void> {
      const from = Math.max(final, head - depth);
      if (from === head) return;
      const moved = [...sends].filter(([, row]) => row.block_number > from && row.block_number <= head);
      const turned = moved.map((_, position) => moved[(position + rotation) % moved.length] ?? moved[0]);
      await writer.rollBack(OPTIMISM_CHAIN_ID, from);
      const half = Math.ceil(turned.length / 2);
      for (const part of [turned.slice(0, half), turned.slice(half)]) {
        head += 1;
        const rows = part.flatMap((entry, log) => {
          if (entry === undefined) return [];
          const row = create(entry[0], head, log, 1_700_000_000 + 2 * head + delaySeconds);
          sends.set(entry[0], row);
          return [row];
        });
        await writer.advance(OPTIMISM_CHAIN_ID, head, { sends: rows });
      }
    },
    async finalize(depth: number): Promise<void> {
      const to = Math.max(final, head - depth);
      const rows = [...sends.values()].filter((row) => row.block_number > final && row.block_number <= to);
      await writer.finalize(OPTIMISM_CHAIN_ID, to, { sends: rows });
      final = to;
    },
  };
}

test("every transfer that is indexed all the time is on exactly one page, and none is on two", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(operations, { minLength: 3, maxLength: 12 }),
      fc.array(operations, { minLength: 3, maxLength: 12 }),
      fc.integer({ min: 1, max: 9 }),
      async (before, during, pageSize) => {
        const model = await createModel();
        try {
          const apply = async (operation: (typeof before)[number]): Promise<void> => {
            if (operation.kind === "reorg")
              return model.reorg(operation.depth, operation.rotation, operation.delaySeconds);
            if (operation.kind === "finalize") return model.finalize(operation.depth);
            return model[operation.kind](operation.count);
          };
          for (const operation of before) await apply(operation);
          const atStart = model.names();
          const queue = [...during];
          const pages = await createListHarness(model.index).readAll({}, pageSize, async () => {
            const operation = queue.shift();
            if (operation !== undefined) await apply(operation);
          });
          const listed = pages.flat().map(({ sent }) => sent.id);
          expect(new Set(listed).size).toBe(listed.length);
          expect([...atStart].filter((id) => !listed.includes(id))).toEqual([]);
          expect(pages.every((page) => page.length <= pageSize)).toBe(true);
        } finally {
          model.index.close();
        }
      },
    ),
    { numRuns: 50 },
  );
});
