import { ServerResponse } from "node:http";
import { Http2ServerResponse } from "node:http2";
import { afterAll, afterEach, inject } from "vitest";
import { createTally } from "./contract-report.js";
import { recordAnswers } from "./response-recorder.js";

// Vitest's setupFile: whatever a gateway in this process answers to a test, by whatever client, is what gen/openapi.json
// says.

const tally = createTally();
const stop = recordAnswers([ServerResponse, Http2ServerResponse], tally.add);

function check(): void {
  const problems = tally.takeProblems();
  if (problems.length > 0) throw new Error([...new Set(problems)].slice(0, 5).join("\n"));
}

afterEach(check);
afterAll(() => {
  stop();
  tally.save(inject("outputFolder"));
  check();
});
