import type { ServiceError } from "../../errors.js";
import type { RpcCall } from "../chain-client.js";
import { type AdaptiveLogReader, createAdaptiveLogReader } from "../endpoints/adaptive-block-range.js";
import type { HedgedRequester } from "../endpoints/hedged-requests.js";
import type { PoolMember } from "../endpoints/pool-member.js";
import type { ReadKind } from "./rules/canonical-answer.js";
import { INITIAL_REST_STATE, isResting, onOutvoted } from "./rules/rest.js";

/** An endpoint whose answers are compared with those of others. */
export interface Voter {
  /** Name of the endpoint; contains no secret. */
  readonly name: string;
  readonly request: HedgedRequester;
  readonly readLogs: AdaptiveLogReader;
  isUsable(): boolean;
  /** Returns the error if only a limit of ours keeps it from being asked now. */
  refusal(): ServiceError | undefined;
  /** Returns how it compares with the others: the lowest is asked first. */
  rank(): number;
  /** Returns the 95th percentile of its last latencies, in milliseconds; undefined: none is known. */
  latencyMs(): number | undefined;
  /** Returns whether it was outvoted a short time ago. */
  isOutvoted(): boolean;
  /** Records that others have agreed on another answer. */
  recordOutvoted(read: ReadKind): void;
}

export interface VoterOptions {
  /** Whether it is asked last for a while after it was outvoted. */
  readonly isRestedWhenOutvoted: boolean;
  readonly onOutvoted: (endpoint: string, read: ReadKind, restMs: number) => void;
  /** Called for each request, with the number of its calls. */
  readonly onRequest: (calls: readonly RpcCall[]) => void;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
}

/** More than any rank of a pool: a resting endpoint is asked only where too few others are left. */
const RESTING_RANK = 100;

export function createVoter({ upstream, request, ...member }: PoolMember, options: VoterOptions): Voter {
  const { isRestedWhenOutvoted, now } = options;
  const { endpoint, breaker } = upstream;
  let rest = INITIAL_REST_STATE;
  const isOutvoted = (): boolean => isResting(rest, now());
  const countedRequest: HedgedRequester = (calls, ...others) => {
    options.onRequest(calls);
    return request(calls, ...others);
  };
  return {
    name: endpoint.name,
    request: countedRequest,
    readLogs: createAdaptiveLogReader({
      upstreams: [upstream],
      isHealthy: () => true,
      request: countedRequest,
      now,
    }),
    isUsable: member.isUsable,
    refusal: member.refusal,
    rank: () => member.rank() + (isRestedWhenOutvoted && isOutvoted() ? RESTING_RANK : 0),
    latencyMs: breaker.latencyP95Ms,
    isOutvoted,
    recordOutvoted(read) {
      const time = now();
      rest = onOutvoted(rest, time);
      options.onOutvoted(endpoint.name, read, rest.restUntil - time);
    },
  };
}

/** Returns the voters that may be asked, best first. */
export function listUsable(voters: readonly Voter[]): readonly Voter[] {
  return voters.filter((voter) => voter.isUsable()).sort((a, b) => a.rank() - b.rank());
}

/** Returns the errors of the voters that only limits of ours keep from being asked now. */
export function listRefusals(voters: readonly Voter[]): readonly ServiceError[] {
  return voters.flatMap((voter) => voter.refusal() ?? []);
}
