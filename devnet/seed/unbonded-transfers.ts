import { getLocalChain } from "../chain/local-chains.js";
import {
  commitTransfers,
  rescueTransferRoot,
  setTransferRoot,
  type TransferRoot,
  withdrawTransfer,
} from "../transfer/deliver-transfer.js";
import type { L2Transfer } from "../transfer/sent-transfer.js";
import { describeRoute, type Seed } from "./seed.js";
import type { SeedContext, TransferPlan } from "./seed-context.js";
import type { SeededTransfer } from "./seeded-transfer.js";

// Transfers that no bonder pays, at every step of their settlement.

interface UnbondedTransfer
  extends Omit<TransferPlan, "minutesAgo">,
    Pick<SeededTransfer, "name" | "description" | "expectedWithdrawalState"> {
  readonly hoursAgo: number;
  readonly expectedState?: SeededTransfer["expectedState"];
  /** Minutes until the transfer is committed; undefined: not yet. */
  readonly committedAfter?: number;
  /** Minutes until its root arrives; undefined: not yet. */
  readonly arrivedAfter?: number;
  /** What happens then. */
  finish?(context: SeedContext, transfer: L2Transfer, root: TransferRoot): Promise<unknown>;
}

const HOURS_OF_NINE_WEEKS = 9 * 7 * 24;
/** Refuses coins: it reverts whatever is called. */
const REFUSING_RECIPIENT = "0x0000000000000000000000000000000000c01d00";
const REVERT_CODE = "0x60006000fd";

const UNBONDED_TRANSFERS: readonly UnbondedTransfer[] = [
  {
    name: "dai-optimism-arbitrum-rescued",
    description: "DAI between L2s, not bonded, and its root was emptied by governance after eight weeks",
    token: "DAI",
    source: "optimism",
    destination: "arbitrum",
    amount: "90",
    hoursAgo: HOURS_OF_NINE_WEEKS,
    committedAfter: 20,
    arrivedAfter: 40,
    expectedWithdrawalState: "BLOCKED",
    async finish({ chains, setClock }, transfer, root) {
      await setClock("arbitrum", 71 * 60);
      await rescueTransferRoot(chains, transfer, root);
    },
  },
  {
    name: "hop-polygon-gnosis-first-leaf",
    description: "HOP between L2s, not bonded, can be withdrawn: the first leaf of its root",
    token: "HOP",
    source: "polygon",
    destination: "gnosis",
    amount: "5000",
    hoursAgo: 61,
    expectedWithdrawalState: "WITHDRAWABLE",
  },
  {
    name: "hop-polygon-gnosis-second-leaf",
    description: "HOP between L2s, not bonded, can be withdrawn: the second leaf of its root",
    token: "HOP",
    source: "polygon",
    destination: "gnosis",
    amount: "5000",
    hoursAgo: 60,
    committedAfter: 20,
    arrivedAfter: 40,
    expectedWithdrawalState: "WITHDRAWABLE",
  },
  {
    name: "usdt-optimism-arbitrum-withdrawn",
    description: "USDT between L2s, not bonded, withdrawn after settlement",
    token: "USDT",
    source: "optimism",
    destination: "arbitrum",
    amount: "220",
    hoursAgo: 25,
    committedAfter: 20,
    arrivedAfter: 60,
    expectedState: "BONDED",
    expectedWithdrawalState: "RECEIVED",
    finish: ({ chains }, transfer, root) => withdrawTransfer(chains, transfer, root),
  },
  {
    name: "usdt-optimism-polygon-withdrawable",
    description: "USDT between L2s, not bonded, can be withdrawn",
    token: "USDT",
    source: "optimism",
    destination: "polygon",
    amount: "220",
    hoursAgo: 23,
    committedAfter: 20,
    arrivedAfter: 40,
    expectedWithdrawalState: "WITHDRAWABLE",
  },
  {
    name: "eth-arbitrum-ethereum-refused",
    description: "ETH to a contract on L1 that refuses it, so that it can be neither bonded nor withdrawn",
    token: "ETH",
    source: "arbitrum",
    destination: "ethereum",
    amount: "0.3",
    hoursAgo: 10,
    recipient: REFUSING_RECIPIENT,
    committedAfter: 20,
    arrivedAfter: 40,
    expectedWithdrawalState: "BLOCKED",
    finish: ({ chains }) => getLocalChain(chains, "ethereum").rpc("anvil_setCode", [REFUSING_RECIPIENT, REVERT_CODE]),
  },
  {
    name: "usdt-optimism-ethereum-unbondable",
    description: "USDT to L1 with a swap there, which no bonder can do",
    token: "USDT",
    source: "optimism",
    destination: "ethereum",
    amount: "220",
    hoursAgo: 8,
    requestsSwapOnL1: true,
    expectedState: "UNBONDABLE",
    expectedWithdrawalState: "WAITING_FOR_COMMIT",
  },
  {
    name: "dai-optimism-arbitrum-committed",
    description: "DAI between L2s, not bonded, committed, but its root has not arrived",
    token: "DAI",
    source: "optimism",
    destination: "arbitrum",
    amount: "75",
    hoursAgo: 6,
    committedAfter: 20,
    expectedWithdrawalState: "WAITING_FOR_ROOT",
  },
  // The last seed: the blocks of the others stay as they are.
  {
    name: "hop-polygon-arbitrum-withdrawable",
    description: "HOP between L2s, not bonded, can be withdrawn: the only leaf of its root",
    token: "HOP",
    source: "polygon",
    destination: "arbitrum",
    amount: "700",
    hoursAgo: 0.5,
    committedAfter: 10,
    arrivedAfter: 20,
    expectedWithdrawalState: "WITHDRAWABLE",
  },
];

export const unbondedSeeds: readonly Seed[] = UNBONDED_TRANSFERS.map((plan) => ({
  source: plan.source,
  destination: plan.destination,
  hoursAgo: plan.hoursAgo,
  async run(context): Promise<readonly SeededTransfer[]> {
    const { name, description, token, source, destination, hoursAgo, committedAfter, arrivedAfter } = plan;
    const minutesAgo = hoursAgo * 60;
    const { receipt, transfer } = await context.send({ ...plan, minutesAgo });
    if (transfer.kind !== "from-l2") throw new Error("not sent over Hop's own bridge");
    if (committedAfter !== undefined) {
      await context.setClock(source, minutesAgo - committedAfter);
      const root = await commitTransfers(context.chains, transfer, context.sender);
      if (arrivedAfter !== undefined) {
        await context.setClock(destination, minutesAgo - arrivedAfter);
        await setTransferRoot(context.chains, transfer, root);
        await plan.finish?.(context, transfer, root);
      }
    }
    return [
      {
        name,
        description,
        ...describeRoute(token, source, destination),
        transferId: transfer.transferId,
        transactionHash: receipt.transactionHash,
        expectedState: plan.expectedState ?? "PENDING",
        expectedWithdrawalState: plan.expectedWithdrawalState,
      },
    ];
  },
}));
