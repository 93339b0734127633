import { type ChildProcess, fork } from "node:child_process";
import { constants, setPriority } from "node:os";
import { fileURLToPath } from "node:url";
import { RevertError } from "../../chain/json-rpc/revert-error.js";
import { getErrorMessage } from "../../errors.js";
import { type PrintedQuote, printRequest } from "../../quotes/shadow-comparison/comparison-case.js";
import type { ReferenceEngine, ReferenceSources } from "../../quotes/shadow-comparison/shadow-comparison.js";
import type { FromReferenceProcess, ReferenceTask, ToReferenceProcess } from "./reference-messages.js";

export interface ReferenceProcessOptions {
  /** Time for a quote, including the start of the process, in milliseconds. */
  readonly timeoutMs?: number;
  /** Module that the process runs. */
  readonly module?: URL;
}

/** A second on an idle machine; a busy one gives a process of the lowest priority little time. */
const DEFAULT_TIMEOUT_MS = 120_000;
/** The SDK takes about 40 MB of it. */
const NODE_OPTIONS = ["--max-old-space-size=128", "--max-semi-space-size=2"];

/**
 * Creates a reference engine that quotes with the SDK in a process of its own, one for each quote. The process has the
 * lowest priority, an empty environment and a limited heap and time, and reaches nothing but this process, which answers
 * its questions.
 */
export function createReferenceProcess({
  timeoutMs = DEFAULT_TIMEOUT_MS,
  module = new URL("./reference-child.js", import.meta.url),
}: ReferenceProcessOptions = {}): ReferenceEngine {
  return {
    quote(request, sources, signal) {
      const { settings, nowSeconds } = sources;
      const task: ReferenceTask = { request: printRequest(request), settings, nowSeconds };
      return new Promise<PrintedQuote>((resolve, reject) => {
        signal.throwIfAborted();
        const child = fork(fileURLToPath(module), [], {
          execArgv: NODE_OPTIONS,
          env: {},
          stdio: ["ignore", "ignore", "ignore", "ipc"],
        });
        lowerPriority(child);
        let quote: PrintedQuote | undefined;
        /** The first thing that went wrong: the SDK rewords what it is told. */
        let failure: string | undefined;
        const end = (reason: string): void => {
          failure ??= reason;
          child.kill("SIGKILL");
        };
        const stop = (): void => end("the service stops");
        const timer = setTimeout(end, timeoutMs, "the SDK took too long");
        signal.addEventListener("abort", stop);
        child.on("message", (message: FromReferenceProcess) => {
          if ("quote" in message) {
            quote = message.quote;
            // It has nothing left to do.
            child.kill("SIGKILL");
          } else if ("failure" in message) failure ??= message.failure;
          else {
            void answerQuestion(message, sources, signal).then((answer) => {
              failure ??= answer.failure;
              if (child.connected) child.send(answer, () => {});
            });
          }
        });
        const settle = (reason: string): void => {
          clearTimeout(timer);
          signal.removeEventListener("abort", stop);
          if (quote === undefined) reject(new Error(failure ?? reason));
          else resolve(quote);
        };
        child.once("error", (error) => settle(getErrorMessage(error)));
        // Not before: there is never more than one such process.
        child.once("close", (code, name) => settle(`the process of the SDK ended with ${name ?? code}`));
        child.send(task, () => {});
      });
    },
  };
}

/** Before the process starts threads, which inherit the priority. */
function lowerPriority({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // It has ended, or a sandbox such as that of the systemd unit does not allow it.
  }
}

type Question = Extract<FromReferenceProcess, { readonly ask: unknown }>;

async function answerQuestion(
  question: Question,
  sources: ReferenceSources,
  signal: AbortSignal,
): Promise<ToReferenceProcess> {
  const { id } = question;
  try {
    switch (question.ask) {
      case "call": {
        const { method, params } = question.call;
        return { id, result: await sources.chains.getClient(question.chain).send(method, params, signal) };
      }
      case "price":
        return { id, result: sources.getUsdPrice(question.symbol) };
      case "attestation":
        return { id, result: await sources.findAttestation(question.hash) };
    }
  } catch (error) {
    if (error instanceof RevertError) return { id, revert: { code: error.code, data: error.data } };
    return { id, failure: getErrorMessage(error) };
  }
}
