import { getNetwork } from "../../../src/hop/networks.js";
import { openTransferIndex, type TransferIndex } from "../../../src/transfers/index/transfer-index.js";
import { closeAfterTest } from "../close-after-test.js";
import { useTemporaryFolder } from "../temporary-folder.js";

/** An index of mainnet in a file. */
export type FileIndex = TransferIndex & { readonly file: string };

/** Opens an index file as a process does. */
export async function openIndex(file: string): Promise<FileIndex> {
  const index = await openTransferIndex({ kind: "sqlite", file }, getNetwork("mainnet"));
  await index.migrate();
  return Object.assign(index, { file });
}

/** Index files in a temporary folder of the current suite. */
export function useTestIndexes() {
  const folder = useTemporaryFolder();
  let files = 0;
  const createPath = (): string => `${folder()}/index-${files++}`;
  /** Opens an index, in a new file unless one is given, until the end of the test. */
  const open = async (file = createPath()): Promise<FileIndex> => closeAfterTest(await openIndex(file));
  return { folder, createPath, open };
}
