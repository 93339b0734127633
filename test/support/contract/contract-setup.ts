import { ServerResponse } from "node:http";
import { Http2ServerResponse } from "node:http2";
import { afterAll, afterEach, inject } from "vitest";
import { keepTimersSteady } from "../steady-timers.js";
import { createContractReport } from "./contract-report.js";
import { recordResponses } from "./response-recorder.js";

// Setup file of Vitest: checks every response of a gateway in this process against gen/openapi.json, whatever the client.

keepTimersSteady();

const report = createContractReport();
const stop = recordResponses([ServerResponse, Http2ServerResponse], report.add);

function throwOnProblems(): void {
  const problems = report.takeProblems();
  if (problems.length > 0) throw new Error([...new Set(problems)].slice(0, 5).join("\n"));
}

afterEach(throwOnProblems);
afterAll(() => {
  stop();
  report.saveCounts(inject("outputFolder"));
  throwOnProblems();
});
