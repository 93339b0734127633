import { ServiceError } from "../../errors.js";
import type { TransferResolver } from "../resolver.js";
import { isSourceUnavailable, usesCustomEndpoints } from "../sources/transfer-source.js";
import { createFairSemaphore, type FairSemaphore } from "./fair-semaphore.js";
import { isBudgetExhausted, type LookupBudgets } from "./lookup-budget.js";
import { meterChains, type SearchTurn } from "./metered-chains.js";
import { MAX_LOG_SEARCHES_PER_CALLER } from "./spend-limits.js";

/**
 * Decorates a resolver: each lookup has a budget of requests to the chains, and its log searches on the operator's
 * endpoints take turns with those of other callers. A lookup that fails after it has spent its budget reports that.
 */
export function createBudgetedResolver(resolver: TransferResolver, budgets: LookupBudgets): TransferResolver {
  const semaphores = new Map<string, FairSemaphore>();

  function getSemaphore(key: string): FairSemaphore {
    const semaphore = semaphores.get(key) ?? createFairSemaphore(MAX_LOG_SEARCHES_PER_CALLER);
    semaphores.set(key, semaphore);
    return semaphore;
  }

  return {
    async resolve(query, context) {
      const { network, chains, caller } = context;
      const budget = budgets.open(caller, usesCustomEndpoints(chains, network.chains.keys()));
      const takeTurn: SearchTurn = async (chain, signal, search) => {
        if (chains.hasCustomEndpoint(chain)) return search();
        try {
          return await getSemaphore(`${network.slug} ${chain}`).acquire(caller, signal, search);
        } catch (error) {
          if (error !== signal.reason) throw error;
          throw new ServiceError("UPSTREAM_UNAVAILABLE", `the logs of ${chain} could not be searched in time`);
        }
      };
      try {
        return await resolver.resolve(query, { ...context, chains: meterChains(chains, budget.spend, takeTurn) });
      } catch (error) {
        if (!isSourceUnavailable(error) && !isBudgetExhausted(error)) throw error;
        throw budget.getExhaustion() ?? error;
      }
    },
  };
}
