import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { buildService } from "../../support/service/build-service.js";
import { findPlantedKeys, OPERATOR_KEY } from "../../support/service/planted-keys.js";
import { runCommand } from "../../support/service/run-command.js";
import { type ServiceProcess, startServiceProcess } from "../../support/service/service-process.js";

// Runs the installed command in child processes.

const read = (name: string): string => readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8");
const { version } = JSON.parse(read("package.json"));

let command: string;
beforeAll(async () => {
  command = await buildService();
});

const run = (args: readonly string[], environment = {}) =>
  runCommand(command, args, { HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0", ...environment });

async function stop(service: ServiceProcess): Promise<void> {
  service.signal("SIGTERM");
  expect(await service.exitCode).toBe(0);
}

describe("hop-gateway", () => {
  test("serve starts the service", async () => {
    const service = await startServiceProcess(command, {}, ["serve"]);
    expect((await fetch(`${service.url}/v1/available-routes`)).status).toBe(200);
    await stop(service);
  });

  test.each(["1", "2"])("says where it listens and which chains respond, with %s workers", async (workers) => {
    const environment = { HOST: "0.0.0.0", WORKERS: workers, RPC_URL_POLYGON: "http://127.0.0.1:1" };
    const service = await startServiceProcess(command, environment);
    const lines = () => service.output().stdout.match(/^hop-gateway.*$/gm) ?? [];
    await vi.waitFor(() => expect(lines()).toHaveLength(3), { timeout: 60_000 });
    expect(lines()).toContain(
      `hop-gateway listens on http://127.0.0.1:${service.port} and all other addresses of this machine (HOST=0.0.0.0)`,
    );
    // A worker can have checked the chains before the others listen.
    expect(lines()).toContain("hop-gateway: 8 of 9 chains reachable; polygon: connection refused");
    await stop(service);
  });

  test.each(["1", "2"])("names endpoints alike in log, metrics and readiness, with %s workers", async (workers) => {
    const url = `http://${OPERATOR_KEY}.invalid/`;
    const service = await startServiceProcess(command, {
      RPC_URL_POLYGON: `http://localhost:1/,${url}`,
      WORKERS: workers,
    });
    const told = async (path: string) => (await fetch(`${service.url}${path}`)).text();
    await told("/v1/quote?amount=1000000&token=USDC.e&fromChain=polygon&toChain=arbitrum&slippage=0.5");
    const readMetrics = async () => (await fetch(service.metricsUrl)).text();
    const findNames = (text: string): string[] => [...new Set(text.match(/\bpolygon\[\d+\]#[0-9a-f]{6}\b/g))].sort();
    const expected = [expect.stringMatching(/^polygon\[1\]/), expect.stringMatching(/^polygon\[2\]/)];
    const options = { timeout: 60_000 };
    await vi.waitFor(async () => expect(findNames(await readMetrics())).toEqual(expected), options);
    const metrics = await readMetrics();
    const names = findNames(metrics);
    await vi.waitFor(() => expect(findNames(service.output().stdout)).toEqual(names), options);
    expect(findNames(await told("/readyz"))).toEqual(names);
    for (const text of [
      metrics,
      await told("/readyz"),
      await told("/livez"),
      await told("/health"),
      service.output().stdout,
    ]) {
      expect(findPlantedKeys(text)).toEqual([]);
      expect(text.replace(/^hop-gateway .*/gm, "")).not.toMatch(/localhost|127\.0\.0\.1:1\b|\.invalid/);
    }
    await stop(service);
  });

  test.each([
    ["any", "1", 1],
    ["any", "2", 1],
    ["public", "1", 0],
  ])("with CUSTOM_RPC_URLS=%s and %s workers warns of it %i times", async (policy, workers, expected) => {
    const service = await startServiceProcess(command, { CUSTOM_RPC_URLS: policy, WORKERS: workers });
    await stop(service);
    const warnings = service.output().stdout.match(/"level":40,[^\n]*any web page/g) ?? [];
    expect(warnings).toHaveLength(expected);
  });

  test.each([["--version"], ["-v"], ["index", "--version"]])("%s %s prints the version", async (...args) => {
    expect(await run(args)).toEqual({ code: 0, stdout: `${version}\n`, stderr: "" });
  });

  test("--help prints the help despite an invalid environment", async () => {
    const ended = await run(["--help", "--all"], { PORT: "none" });
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(ended.stdout).toContain("hop-gateway check");
    expect(ended.stdout).toContain("QUOTE_MAX_STALE_MS");
  });

  test.each([
    [["sevre"], 'unknown command "sevre"', "hop-gateway --help"],
    [["--port", "80"], "Unknown option '--port'", "hop-gateway --help"],
    [["serve", "now"], "serve accepts only options", "hop-gateway serve --help"],
    [["index", "--form", "2024"], "Unknown option '--form'", "hop-gateway index --help"],
  ])("%j: prints the error, starts nothing and exits with code 2", async (args, message, help) => {
    const ended = await run(args);
    expect(ended).toEqual({
      code: 2,
      stdout: "",
      stderr: `hop-gateway: ${message}; see ${help}\n`,
    });
  });

  test("lists an invalid environment, starts nothing and exits with code 1", async () => {
    const ended = await run([], { PORT: "none", WORKERS: "0" });
    expect(ended.code).toBe(1);
    expect(ended.stdout).toBe("");
    expect(ended.stderr).toContain("the configuration has 2 problems:");
  });

  test.each([["--help"], ["--version"]])("%s succeeds when its output is closed", async (option) => {
    const child = spawn(process.execPath, [command, option], { stdio: ["ignore", "pipe", "pipe"] });
    // The reading end is closed before anything is written.
    child.stdout.destroy();
    let stderr = "";
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    const [code] = await once(child, "close");
    expect(stderr).toBe("");
    expect(code).toBe(0);
  });
});
