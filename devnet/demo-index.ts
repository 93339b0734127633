import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Before every block of the local chains, whose saved state can be older than an index by default covers. */
const INDEX_FROM = "2020-01-01";

/** An index of the demo's transfers. */
export interface DemoIndex {
  /** Variables that configure it. None if the user has chosen. */
  readonly environment: Readonly<Record<string, string>>;
  remove(): Promise<void>;
}

/** Creates a temporary folder for an index, without which the transfers of an account cannot be listed. */
export async function createDemoIndex({
  INDEX = "",
}: Readonly<Record<string, string | undefined>>): Promise<DemoIndex> {
  if (INDEX !== "") return { environment: {}, remove: async () => {} };
  const folder = await mkdtemp(join(tmpdir(), "hop-gateway-demo-"));
  return {
    environment: { INDEX: `sqlite:${join(folder, "transfers.db")}`, INDEX_FROM },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}
