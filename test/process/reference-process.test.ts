import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { createReferenceProcess } from "../../src/app/shadow-comparison/reference-process.js";
import { getBuiltInFeeSettings } from "../../src/hop/fee-settings.js";
import { parseRequest } from "../../src/quotes/shadow-comparison/comparison-case.js";
import type { ReferenceSources } from "../../src/quotes/shadow-comparison/shadow-comparison.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";

// The process of the reference engine, with other programs in place of the SDK. test/e2e/quotes/shadow-comparison.test.ts
// has the SDK.

const folder = useTemporaryFolder();
const request = parseRequest({
  ...{
    network: "mainnet",
    token: "ETH",
    fromChain: "arbitrum",
    toChain: "optimism",
    amount: "1",
    slippagePercent: 0.5,
  },
});
const sources: ReferenceSources = {
  chains: {
    hasCustomEndpoint: () => false,
    getClient: () => {
      throw new Error("optimism: no endpoint responds");
    },
  },
  settings: getBuiltInFeeSettings("mainnet"),
  nowSeconds: 1,
  getUsdPrice: () => 2,
  findAttestation: async () => undefined,
};

let runs = 0;

/** Runs a program as the process; `pidFile` is where it writes its id. */
function run(program: string, timeoutMs = 60_000) {
  runs += 1;
  const pidFile = `${folder()}/pid-${runs}`;
  const file = `${folder()}/program-${runs}.mjs`;
  writeFileSync(
    file,
    `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(pidFile)}, String(process.pid));${program}`,
  );
  const stop = new AbortController();
  const engine = createReferenceProcess({ timeoutMs, module: pathToFileURL(file) });
  const quote = engine.quote(request, sources, stop.signal);
  quote.catch(() => {});
  return { quote, stop, pidFile };
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const HANG = "process.on('message', () => {}); setInterval(() => {}, 1_000);";

test("has the lowest priority in all threads, and nothing of this process's environment", async () => {
  process.env.SECRET_OF_THE_SERVICE = "https://example.com/key";
  const program = `
    import { readdirSync, readFileSync } from "node:fs";
    process.once("message", (task) => {
      const nice = readdirSync("/proc/self/task").map((id) => {
        return readFileSync("/proc/self/task/" + id + "/stat", "utf8").split(") ")[1].split(" ")[16];
      });
      const quote = { nice: String([...new Set(nice)]), environment: Object.keys(process.env).join(), ...task.request };
      process.send({ quote }, () => process.exit());
    });`;
  try {
    expect(await run(program).quote).toEqual({
      ...{ nice: "19", environment: "" },
      ...{
        network: "mainnet",
        token: "ETH",
        fromChain: "arbitrum",
        toChain: "optimism",
        amount: "1",
        slippagePercent: 0.5,
      },
    });
  } finally {
    delete process.env.SECRET_OF_THE_SERVICE;
  }
});

test("is killed when it takes too long", async () => {
  await expect(run(HANG, 200).quote).rejects.toThrow("the SDK took too long");
});

test("is killed once it has quoted", async () => {
  const { quote, pidFile } = run(`process.send({ quote: { amountIn: "1" } }); ${HANG}`);
  expect(await quote).toEqual({ amountIn: "1" });
  expect(isAlive(Number(readFileSync(pidFile, "utf8")))).toBe(false);
});

test("is killed when the service stops", async () => {
  const { quote, stop, pidFile } = run(HANG);
  await expect.poll(() => existsSync(pidFile)).toBe(true);
  stop.abort();
  await expect(quote).rejects.toThrow("the service stops");
  expect(isAlive(Number(readFileSync(pidFile, "utf8")))).toBe(false);
});

test("ends when its heap is full", async () => {
  const program = "const kept = []; process.once('message', () => { for (;;) kept.push(new Array(1_000).fill({})); });";
  await expect(run(program).quote).rejects.toThrow("the process of the SDK ended with SIGABRT");
});

test("fails with what kept it from an answer", async () => {
  const program = `
    process.once("message", () => {
      process.on("message", ({ failure }) => process.send({ failure: "SDK: " + failure }, () => process.exit()));
      process.send({ id: 1, ask: "call", chain: "optimism", call: { method: "eth_call", params: [] } });
    });`;
  await expect(run(program).quote).rejects.toThrow(/^optimism: no endpoint responds$/);
});
