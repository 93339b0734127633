import { utils } from "ethers";
import { getBonder } from "../chain/local-chains.js";
import { describeRoute, getTransferId, type Seed } from "./seed.js";
import type { SeededTransfer } from "./seeded-transfer.js";

/** An ordinary transfer: sent, and delivered some minutes later or still pending. */
interface TypicalTransfer {
  readonly name: string;
  readonly description: string;
  readonly token: string;
  readonly source: string;
  readonly destination: string;
  /** In whole tokens. */
  readonly amount: string;
  readonly hoursAgo: number;
  /** Minutes until delivery; undefined: pending. */
  readonly deliveredAfter?: number;
  /** From ethereum: with a relayer fee. */
  readonly relayed?: boolean;
  /** Sends USDC.e through Hop's bridge, as before CCTP. */
  readonly viaHopBridge?: boolean;
  /** Default: RECEIVED. */
  readonly withdrawalState?: SeededTransfer["expectedWithdrawalState"];
}

const TYPICAL_TRANSFERS: readonly TypicalTransfer[] = [
  {
    name: "eth-ethereum-arbitrum",
    description: "ETH from L1, relayed for a fee, completed",
    token: "ETH",
    source: "ethereum",
    destination: "arbitrum",
    amount: "1.25",
    hoursAgo: 70,
    deliveredAfter: 12,
    relayed: true,
  },
  {
    name: "usdt-polygon-arbitrum",
    description: "USDT between L2s, bonded",
    token: "USDT",
    source: "polygon",
    destination: "arbitrum",
    amount: "500",
    hoursAgo: 66,
    deliveredAfter: 3,
  },
  {
    name: "hop-arbitrum-optimism",
    description: "HOP between L2s (no pool, no swap), bonded",
    token: "HOP",
    source: "arbitrum",
    destination: "optimism",
    amount: "5000",
    hoursAgo: 62,
    deliveredAfter: 2,
  },
  {
    name: "dai-gnosis-polygon",
    description: "xDAI, gnosis's native coin, to DAI, bonded",
    token: "DAI",
    source: "gnosis",
    destination: "polygon",
    amount: "1200",
    hoursAgo: 58,
    deliveredAfter: 4,
  },
  {
    name: "matic-polygon-gnosis",
    description: "MATIC, polygon's native coin, bonded",
    token: "MATIC",
    source: "polygon",
    destination: "gnosis",
    amount: "800",
    hoursAgo: 54,
    deliveredAfter: 3,
  },
  {
    name: "eth-optimism-base",
    description: "ETH between L2s, bonded",
    token: "ETH",
    source: "optimism",
    destination: "base",
    amount: "0.8",
    hoursAgo: 50,
    deliveredAfter: 1,
  },
  {
    name: "usdce-optimism-arbitrum",
    description: "USDC.e through Hop's bridge, as before CCTP, bonded",
    token: "USDC.e",
    source: "optimism",
    destination: "arbitrum",
    amount: "2500",
    hoursAgo: 46,
    deliveredAfter: 2,
    viaHopBridge: true,
  },
  {
    name: "eth-linea-polygonzk",
    description: "ETH between linea and polygonzk, bonded",
    token: "ETH",
    source: "linea",
    destination: "polygonzk",
    amount: "0.6",
    hoursAgo: 43,
    deliveredAfter: 2,
  },
  {
    name: "magic-arbitrum-nova",
    description: "MAGIC between L2s, bonded",
    token: "MAGIC",
    source: "arbitrum",
    destination: "nova",
    amount: "900",
    hoursAgo: 40,
    deliveredAfter: 2,
  },
  {
    name: "reth-optimism-arbitrum",
    description: "rETH between L2s, bonded",
    token: "rETH",
    source: "optimism",
    destination: "arbitrum",
    amount: "2",
    hoursAgo: 37,
    deliveredAfter: 3,
  },
  {
    name: "eth-arbitrum-ethereum",
    description: "ETH to L1, bonded",
    token: "ETH",
    source: "arbitrum",
    destination: "ethereum",
    amount: "3",
    hoursAgo: 34,
    deliveredAfter: 6,
  },
  {
    name: "usdt-optimism-ethereum",
    description: "USDT to L1, bonded",
    token: "USDT",
    source: "optimism",
    destination: "ethereum",
    amount: "1500",
    hoursAgo: 31,
    deliveredAfter: 8,
  },
  {
    name: "snx-optimism-ethereum",
    description: "SNX, whose bridge is deprecated for deposits, to L1, bonded",
    token: "SNX",
    source: "optimism",
    destination: "ethereum",
    amount: "350",
    hoursAgo: 29,
    deliveredAfter: 5,
  },
  {
    name: "dai-ethereum-optimism",
    description: "DAI from L1 without a relayer, completed",
    token: "DAI",
    source: "ethereum",
    destination: "optimism",
    amount: "4000",
    hoursAgo: 27,
    deliveredAfter: 15,
  },
  {
    name: "usdc-ethereum-base",
    description: "USDC from L1 by CCTP, received",
    token: "USDC",
    source: "ethereum",
    destination: "base",
    amount: "10000",
    hoursAgo: 22,
    deliveredAfter: 18,
  },
  {
    name: "usdc-arbitrum-polygon",
    description: "USDC between L2s by CCTP, received",
    token: "USDC",
    source: "arbitrum",
    destination: "polygon",
    amount: "750",
    hoursAgo: 20,
    deliveredAfter: 16,
  },
  {
    name: "usdce-polygon-base",
    description: "USDC.e, swapped to USDC and sent by CCTP, received",
    token: "USDC.e",
    source: "polygon",
    destination: "base",
    amount: "640",
    hoursAgo: 18,
    deliveredAfter: 17,
  },
  {
    name: "usdc-optimism-ethereum",
    description: "USDC to L1 by CCTP, not received yet",
    token: "USDC",
    source: "optimism",
    destination: "ethereum",
    amount: "3200",
    hoursAgo: 3,
    withdrawalState: "REDEEMABLE",
  },
  {
    name: "usdc-ethereum-arbitrum-unattested",
    description: "USDC from L1 by CCTP, not attested yet",
    token: "USDC",
    source: "ethereum",
    destination: "arbitrum",
    amount: "610",
    hoursAgo: 2,
    withdrawalState: "WAITING_FOR_ATTESTATION",
  },
  {
    name: "eth-base-polygon",
    description: "ETH between L2s, not bonded yet",
    token: "ETH",
    source: "base",
    destination: "polygon",
    amount: "0.5",
    hoursAgo: 1,
    withdrawalState: "WAITING_FOR_COMMIT",
  },
];

export const typicalSeeds: readonly Seed[] = TYPICAL_TRANSFERS.map((plan) => ({
  source: plan.source,
  destination: plan.destination,
  hoursAgo: plan.hoursAgo,
  async run(context): Promise<readonly SeededTransfer[]> {
    const { name, description, token, source, destination, amount, deliveredAfter, relayed, viaHopBridge } = plan;
    const { withdrawalState = "RECEIVED" } = plan;
    const minutesAgo = plan.hoursAgo * 60;
    const { receipt, transfer } = await context.send({
      token,
      source,
      destination,
      amount,
      minutesAgo,
      ...(relayed ? { relayer: getBonder(token, source, destination) } : {}),
      ...(viaHopBridge ? { viaHopBridge } : {}),
    });
    if (deliveredAfter !== undefined) await context.deliver(transfer, minutesAgo - deliveredAfter);
    return [
      {
        name,
        description,
        ...describeRoute(transfer.token, source, destination, transfer.kind === "cctp"),
        transferId: getTransferId(transfer, receipt),
        transactionHash: receipt.transactionHash,
        expectedState: deliveredAfter === undefined ? "PENDING" : "BONDED",
        expectedWithdrawalState: withdrawalState,
        ...(withdrawalState === "WAITING_FOR_ATTESTATION" && transfer.kind === "cctp"
          ? { unattestedMessageHash: utils.keccak256(transfer.message) }
          : {}),
      },
    ];
  },
}));
