import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { RecordedResponse } from "./response-recorder.js";
import { createResponseValidator, readOpenApi, type ValidateResponse } from "./response-validator.js";

// Counts the responses that a test run checks against gen/openapi.json, and collects those that deviate from it.

/** Name prefixes of the files in the output folder. */
export const RESPONSES_FILE_PREFIX = "responses";
const COUNTS_FILE_PREFIX = "counts";

/** Validates responses one by one. */
export interface ContractReport {
  add(response: RecordedResponse): void;
  /** Returns the problems found since the last call. They contain no value that a caller sent. */
  takeProblems(): readonly string[];
  /** Appends the counts to a file in the output folder. */
  saveCounts(folder: string): void;
}

type Counts = Record<string, number>;

export function createContractReport(): ContractReport {
  const counts: Counts = {};
  let problems: string[] = [];
  let validate: ValidateResponse | undefined;
  return {
    add(response) {
      const { method, path, parameters, status, headers } = response;
      let found: readonly string[] | undefined;
      try {
        validate ??= createResponseValidator(readOpenApi());
        found = validate(response);
      } catch (error) {
        // Reported by the test that received the response.
        found = [`it could not be validated: ${String(error)}`];
      }
      if (found === undefined) return;
      const pathLabel = /^\/v1\/[a-z:-]{1,40}$/.test(path) ? path : "other";
      counts[`${pathLabel} ${status}`] = (counts[`${pathLabel} ${status}`] ?? 0) + 1;
      if (found.length === 0) return;
      const request = `${method} ${pathLabel}?${parameters.join("&")} (${headers["x-request-id"] ?? "no id"})`;
      problems.push(
        `${request} returned ${status}, which gen/openapi.json does not allow: ${found.slice(0, 3).join("; ")}`,
      );
    },
    takeProblems() {
      const taken = problems;
      problems = [];
      return taken;
    },
    saveCounts(folder) {
      appendFileSync(`${folder}/${COUNTS_FILE_PREFIX}-${process.pid}`, `${JSON.stringify(counts)}\n`);
    },
  };
}

/**
 * Validates the responses that child processes recorded, adds up the counts of all test files, and writes them to
 * node_modules/.cache/contract/<project>.json.
 * @returns the problems of the recorded responses
 */
export function writeContractReport(folder: string, project: string): readonly string[] {
  const recorded = createContractReport();
  for (const line of readLines(folder, RESPONSES_FILE_PREFIX)) recorded.add(JSON.parse(line) as RecordedResponse);
  recorded.saveCounts(folder);
  const all: Counts = {};
  for (const line of readLines(folder, COUNTS_FILE_PREFIX)) {
    for (const [key, count] of Object.entries(JSON.parse(line) as Counts)) all[key] = (all[key] ?? 0) + count;
  }
  const byKey = Object.fromEntries(Object.entries(all).sort(([a], [b]) => (a < b ? -1 : 1)));
  const total = Object.values(all).reduce((sum, count) => sum + count, 0);
  const cache = fileURLToPath(new URL("../../../node_modules/.cache/contract/", import.meta.url));
  mkdirSync(cache, { recursive: true });
  writeFileSync(`${cache}${project}.json`, `${JSON.stringify({ total, byPathAndStatus: byKey }, undefined, 2)}\n`);
  return recorded.takeProblems();
}

function readLines(folder: string, prefix: string): string[] {
  const files = readdirSync(folder).filter((name) => name.startsWith(`${prefix}-`));
  return files.flatMap((name) => readFileSync(`${folder}/${name}`, "utf8").split("\n").filter(Boolean));
}
