import { ServiceError } from "../../errors.js";
import { FairSemaphore } from "../../resilience/fair-semaphore.js";
import {
  isSourceUnavailable,
  type LookupContext,
  type LookupResult,
  type TransferQuery,
  type TransferSource,
} from "../sources/transfer-source.js";
import { isBudgetExhausted, type LookupBudgets, MAX_LOG_SEARCHES_PER_CALLER } from "./lookup-budget.js";
import { meterChains, type SearchTurn } from "./metered-chains.js";

/**
 * Decorates a resolver: each lookup has a budget of requests to the chains, and its log searches on the operator's
 * endpoints take turns with those of other callers. A lookup that fails after it has spent its budget reports that.
 */
export class BudgetedResolver implements TransferSource {
  readonly #resolver: TransferSource;
  readonly #budgets: LookupBudgets;
  readonly #semaphores = new Map<string, FairSemaphore>();

  constructor(resolver: TransferSource, budgets: LookupBudgets) {
    this.#resolver = resolver;
    this.#budgets = budgets;
  }

  async resolve(query: TransferQuery, context: LookupContext): Promise<LookupResult> {
    const { network, chains, isPrivate } = context;
    const callers = context.waiters ?? context.caller;
    const budget = this.#budgets.open(callers, isPrivate);
    const takeTurn: SearchTurn = async (chain, signal, search) => {
      if (chains.hasCustomEndpoint(chain)) return search();
      try {
        return await this.#getSemaphore(`${network.slug} ${chain}`).acquire(callers, signal, search);
      } catch (error) {
        if (error !== signal.reason) throw error;
        throw new ServiceError("UPSTREAM_UNAVAILABLE", `the logs of ${chain} could not be searched in time`);
      }
    };
    try {
      return await this.#resolver.resolve(query, { ...context, chains: meterChains(chains, budget, takeTurn) });
    } catch (error) {
      if (!isSourceUnavailable(error) && !isBudgetExhausted(error)) throw error;
      throw budget.getExhaustion() ?? error;
    }
  }

  #getSemaphore(key: string): FairSemaphore {
    const semaphore = this.#semaphores.get(key) ?? new FairSemaphore(MAX_LOG_SEARCHES_PER_CALLER);
    this.#semaphores.set(key, semaphore);
    return semaphore;
  }
}
