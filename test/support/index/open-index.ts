import { getNetwork } from "../../../src/hop/networks.js";
import { openTransferIndex, type TransferIndex } from "../../../src/transfers/index/transfer-index.js";

/** An index of mainnet in a file. */
export type FileIndex = TransferIndex & { readonly file: string };

/** Opens an index file as a process does. */
export async function openIndex(file: string): Promise<FileIndex> {
  const index = await openTransferIndex({ kind: "sqlite", file }, getNetwork("mainnet"));
  await index.migrate();
  return Object.assign(index, { file });
}
