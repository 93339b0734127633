import { expect, test, vi } from "vitest";
import { IndexModule } from "../../../src/app/compose-index.js";
import { StartupError } from "../../../src/app/process-lifecycle.js";
import type { ChainClients } from "../../../src/chain/chains.js";
import { BlockFinder } from "../../../src/chain/read/block-finder.js";
import { createLogger } from "../../../src/observability/log.js";
import { useTestIndexes } from "../../support/index/open-index.js";

const indexes = useTestIndexes();

async function createModule() {
  const opened = await indexes.open();
  const module = new IndexModule({
    opened,
    from: { timestamp: 0, blocks: new Map() },
    chains: {} as ChainClients,
    blockTimes: new BlockFinder(() => 0),
    logger: createLogger("silent"),
  });
  return { opened, module };
}

test.each(["at the start", "after its server was away"])(
  "a stop does not wait for a migration %s, which closes the index when it ends",
  async (when) => {
    const { opened, module } = await createModule();
    let endMigration: (() => void) | undefined;
    const migrate = vi.spyOn(opened, "migrate").mockReturnValue(
      new Promise((resolve) => {
        endMigration = resolve;
      }),
    );
    const isAway = when !== "at the start";
    if (isAway) migrate.mockRejectedValueOnce(Object.assign(new Error("away"), { isTemporary: true }));
    // That of a pool of PostgreSQL would wait for the connection of the migration.
    const close = vi.spyOn(opened.database, "close");
    const started = module.start();
    await vi.waitFor(() => expect(migrate).toHaveBeenCalledTimes(isAway ? 2 : 1), { timeout: 10_000 });
    await module.stop();
    expect(close).not.toHaveBeenCalled();
    endMigration?.();
    await started;
    await vi.waitFor(() => expect(close).toHaveBeenCalledOnce());
  },
);

test("a start that fails closes the index, and a stop after it does nothing", async () => {
  const { opened, module } = await createModule();
  vi.spyOn(opened, "migrate").mockRejectedValue(new Error("a newer version has written it"));
  const close = vi.spyOn(opened.database, "close");
  await expect(module.start()).rejects.toThrow(StartupError);
  await module.stop();
  expect(close).toHaveBeenCalledOnce();
});
