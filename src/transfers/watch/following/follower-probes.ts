import type { Probe } from "../polling/chain-poller.js";
import { getPollIntervalMs, getTransferPollMs } from "../polling/pace.js";
import { type Answer, createAppearanceQuestion, createDeliveryQuestion, type Question } from "../polling/questions.js";
import type { WatchTarget } from "../watch-target.js";
import { type FollowedTransfer, type LookupReason, recordReceipt } from "./followed-transfer.js";
import type { FollowerDeps } from "./follower-deps.js";

// What a follower asks the chains at each poll, and what it makes of the answers.

export type ProbePlan = Pick<Probe, "chain" | "question" | "onAnswer">;

/** The part of a follower that its probes need. */
export interface ProbedFollower<M> {
  readonly target: WatchTarget;
  readonly likelySource: string;
  search(): Promise<void>;
  refresh(transfer: FollowedTransfer<M>, reason: LookupReason): Promise<void>;
  checkFinality(transfer: FollowedTransfer<M>): Promise<void>;
}

/** A chain on which an unknown transfer was hardly sent is asked so many times less often. */
const UNLIKELY_SOURCE_FACTOR = 5;

/** Asks every chain for a target that nobody knows. */
export function planAppearanceProbes<M>(
  follower: ProbedFollower<M>,
  { getContracts }: Pick<FollowerDeps<M>, "getContracts">,
): readonly ProbePlan[] {
  const { target, likelySource } = follower;
  const { network } = target;
  return [...network.chains.values()].flatMap((chain) => {
    const question = createAppearanceQuestion(target, chain, getContracts(network));
    if (question === undefined) return [];
    const isUnlikely = likelySource !== "" && likelySource !== chain.slug;
    const pollMs = getPollIntervalMs(chain) * (isUnlikely ? UNLIKELY_SOURCE_FACTOR : 1);
    const onAnswer = ({ receipt, isFound }: Answer): number => {
      if (receipt !== undefined || isFound) void follower.search();
      return pollMs;
    };
    return [{ chain, question, onAnswer }];
  });
}

/** Asks the source whether it still has a transfer, and the destination whether it has delivered it. */
export function planTransferProbes<M>(
  follower: ProbedFollower<M>,
  transfer: FollowedTransfer<M>,
  { getContracts, wallNow }: Pick<FollowerDeps<M>, "getContracts" | "wallNow">,
): readonly ProbePlan[] {
  const { sent, delivery, source } = transfer.status;
  // The index tells of changes by itself; what the explorer says is looked up again instead.
  if (transfer.isSettled || source !== "chain") return [];
  const { source: sourceChain, destination, blockNumber, transactionHash, timestamp } = sent;
  const getAgeMs = (): number => wallNow() - timestamp * 1_000;
  const suspectReorg = (): void => void follower.refresh(transfer, "reorg");

  const sendPlan: ProbePlan = {
    chain: sourceChain,
    question: { kind: "receipt", hash: transactionHash },
    onAnswer({ receipt, head }) {
      if (transfer.isSourceFinal) return Number.POSITIVE_INFINITY;
      const { next, isReorged } = recordReceipt(transfer.send, { receipt, head, blockNumber });
      transfer.send = next;
      if (isReorged) suspectReorg();
      return getTransferPollMs(sourceChain, getAgeMs());
    },
  };

  const deliveryHash = delivery?.transactionHash;
  const question: Question | undefined =
    deliveryHash === undefined
      ? createDeliveryQuestion(sent, getContracts(follower.target.network))
      : { kind: "receipt", hash: deliveryHash };
  if (question === undefined) return [sendPlan];
  const deliveryPlan: ProbePlan = {
    chain: destination,
    question,
    onAnswer({ receipt, head, isFound }) {
      if (deliveryHash === undefined) {
        if (isFound) void follower.refresh(transfer, "delivery");
      } else {
        const { next, isReorged } = recordReceipt(transfer.delivery, {
          receipt,
          head,
          blockNumber: delivery?.blockNumber ?? 0,
        });
        transfer.delivery = next;
        if (isReorged) suspectReorg();
        else void follower.checkFinality(transfer);
      }
      return getTransferPollMs(destination, getAgeMs());
    },
  };
  return [sendPlan, deliveryPlan];
}
