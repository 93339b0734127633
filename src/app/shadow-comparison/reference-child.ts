import { writeFileSync } from "node:fs";
import type { ChainClient } from "../../chain/chain-client.js";
import type { NetworkChainClients } from "../../chain/chains.js";
import { RevertError } from "../../chain/json-rpc/revert-error.js";
import { getErrorMessage } from "../../errors.js";
import { createFixedFeeSettings } from "../../hop/fee-settings-source.js";
import { createSdkEngine } from "../../quotes/sdk-engine.js";
import { parseRequest, printQuote } from "../../quotes/shadow-comparison/comparison-case.js";
import type { FromReferenceProcess, ReferenceTask, ToReferenceProcess } from "./reference-messages.js";

// The process of the reference engine: quotes once with the SDK and ends. It opens no connection and reads no
// configuration; whatever the SDK needs is asked of the parent process.

type Question = Extract<FromReferenceProcess, { readonly ask: unknown }>;
/** A question without its id. */
type Unasked<Q> = Q extends Question ? Omit<Q, "id"> : never;

const pending = new Map<number, (answer: ToReferenceProcess) => void>();
let lastId = 0;

// The service is gone: nobody would end this process.
process.on("disconnect", () => process.exit(1));
preferToBeKilled();
process.once("message", (task: ReferenceTask) => {
  process.on("message", (answer: ToReferenceProcess) => {
    pending.get(answer.id)?.(answer);
    pending.delete(answer.id);
  });
  quote(task)
    .catch((error: unknown): FromReferenceProcess => ({ failure: getErrorMessage(error) }))
    .then((message) => process.send?.(message, () => process.exit()));
});

/** Where memory runs out, the kernel of Linux kills this process and not the service. */
function preferToBeKilled(): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", "1000");
  } catch {
    // Another system, or a sandbox.
  }
}

async function quote({ request, settings, nowSeconds }: ReferenceTask): Promise<FromReferenceProcess> {
  const chains: NetworkChainClients = { getClient: createClient, hasCustomEndpoint: () => false };
  const engine = createSdkEngine({
    settings: createFixedFeeSettings(settings),
    prices: {
      getTable: rejectUse,
      peekTable: rejectUse,
      getUsdPrice: async (symbol) => Number((await ask({ ask: "price", symbol })).result),
    },
    attestations: {
      find: async (hash) => ((await ask({ ask: "attestation", hash })).result as string | undefined) ?? undefined,
    },
    chains: () => chains,
    limiter: { run: rejectUse, load: rejectUse, assertCapacity: rejectUse },
  });
  const { signal } = new AbortController();
  return { quote: printQuote(await engine.quoteAtTime(parseRequest(request), chains, nowSeconds, signal)) };
}

function createClient(slug: string): ChainClient {
  return {
    slug,
    async send(method, params) {
      const { result, revert } = await ask({ ask: "call", chain: slug, call: { method, params } });
      if (revert !== undefined) throw new RevertError("execution reverted", revert.code, revert.data);
      return result;
    },
    sendBatch: rejectUse,
    getLogs: rejectUse,
  };
}

/** @throws Error when the parent process has no answer */
function ask(question: Unasked<Question>): Promise<ToReferenceProcess> {
  lastId += 1;
  const id = lastId;
  return new Promise((resolve, reject) => {
    pending.set(id, (answer) => {
      if (answer.failure === undefined) resolve(answer);
      else reject(new Error(answer.failure));
    });
    process.send?.({ ...question, id });
  });
}

function rejectUse(): never {
  throw new Error("not part of a quote by the SDK");
}
