import type { ServiceError } from "../../errors.js";
import type { CallBudgets } from "./budget/call-budget.js";
import { refuseWithoutCapacity, tooManyRequestsError } from "./budget/upstream-budget.js";
import type { Upstream } from "./endpoint-attempt.js";
import type { HedgedRequester } from "./hedged-requests.js";

/** One endpoint of a pool, for what asks several of them. */
export interface PoolMember {
  readonly upstream: Upstream;
  /** Sends requests to this endpoint only. */
  readonly request: HedgedRequester;
  /** Returns whether it may get requests now. */
  isUsable(): boolean;
  /** Returns the error if only a limit of ours keeps it from getting requests now. */
  refusal(): ServiceError | undefined;
  /** Returns how it compares with the others: 0 is best. */
  rank(): number;
}

export interface PoolMembersOptions {
  /** Sends requests to any endpoint. */
  readonly request: HedgedRequester;
  readonly budgets: Pick<CallBudgets, "limit">;
  /** Called before each request. */
  readonly onRequest: () => void;
  readonly hasCapacity: (upstream: Upstream) => boolean;
  readonly rank: (upstream: Upstream) => number;
}

export function createPoolMembers(upstreams: readonly Upstream[], options: PoolMembersOptions): readonly PoolMember[] {
  const { budgets, onRequest, hasCapacity, rank } = options;
  return upstreams.map((upstream) => {
    const budgeted = budgets.limit(limitToUpstream(options.request, upstream), () => [upstream.endpoint.name]);
    const listUsable = (): readonly Upstream[] => (upstream.breaker.isCoolingDown() ? [] : [upstream]);
    const request = refuseWithoutCapacity(budgeted, listUsable, hasCapacity);
    return {
      upstream,
      async request(...call) {
        onRequest();
        return request(...call);
      },
      isUsable: () => listUsable().some(hasCapacity),
      refusal: () => (listUsable().every(hasCapacity) ? undefined : tooManyRequestsError()),
      rank: () => rank(upstream),
    };
  });
}

/** Decorates a requester: it asks one endpoint only, again if that fails. */
function limitToUpstream(request: HedgedRequester, upstream: Upstream): HedgedRequester {
  return (calls, signal, policy) =>
    request(calls, signal, {
      isEligible: (other) => other === upstream,
      isRangeTooWide: (...failure) => policy?.isRangeTooWide(...failure) ?? false,
    });
}
