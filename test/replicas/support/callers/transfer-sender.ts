import { connectChains, getBonder } from "../../../../devnet/chain/local-chains.js";
import { fundAccount } from "../../../../devnet/chain/tokens.js";
import { deliverTransfer } from "../../../../devnet/transfer/deliver-transfer.js";
import { sendTransfer } from "../../../../devnet/transfer/send-transfer.js";
import { parseSentTransfers } from "../../../../devnet/transfer/sent-transfer.js";

/** A transfer on the local chains that is delivered when the test says so. */
export interface SentTestTransfer {
  readonly transactionHash: string;
  deliver(): Promise<void>;
}

const AMOUNT = 5n * 10n ** 18n;
const ROUTES = [
  ["polygon", "arbitrum"],
  ["arbitrum", "polygon"],
  ["polygon", "optimism"],
  ["arbitrum", "optimism"],
] as const;

/** Sends transfers of HOP, over four routes in turn. */
export async function sendTestTransfers(
  urls: Parameters<typeof connectChains>[0],
  count: number,
): Promise<readonly SentTestTransfer[]> {
  const chains = connectChains(urls);
  const sent: SentTestTransfer[] = [];
  for (let index = 0; index < count; index++) {
    const [source, destination] = ROUTES[index % ROUTES.length] ?? ROUTES[0];
    const from = getBonder("HOP", source, destination);
    await fundAccount(chains, source, "HOP", from, AMOUNT);
    const noSwap = { amountOutMin: 0n, deadline: 0, destinationAmountOutMin: 0n, destinationDeadline: 0 };
    const order = { token: "HOP", source, destination, from, recipient: from, amount: AMOUNT, bonderFee: 10n ** 17n };
    const { transactionHash, logs } = await sendTransfer(chains, { ...order, ...noSwap });
    const [transfer] = parseSentTransfers(source, logs);
    if (transfer === undefined) throw new Error("no transfer was sent");
    sent.push({
      transactionHash,
      async deliver() {
        await deliverTransfer(chains, transfer);
      },
    });
  }
  return sent;
}
