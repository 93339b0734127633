import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { buildService } from "../support/service/build-service.js";
import {
  createHttpConnections,
  type HttpConnections,
  type RawHttpRequest,
} from "../support/service/http-connections.js";
import {
  CALLER_KEY,
  findPlantedKeys,
  findPlantedKeysInFolder,
  OPERATOR_KEY,
  plantKeys,
} from "../support/service/planted-keys.js";
import { findResponseProblem } from "../support/service/response-invariants.js";
import { type ServiceProcess, startServiceProcess } from "../support/service/service-process.js";
import { type RpcProxy, startRpcProxy } from "../support/stubs/rpc-proxy.js";

// Keys in RPC URLs, ours and callers', and every kind of trouble with what they name: nobody may read them anywhere.
// What the whole run wrote is searched once more at its end (test/support/service/local-network-setup.ts).

describe("the search", () => {
  const key = Buffer.from(OPERATOR_KEY);
  test.each([
    ["as it is", `a ${OPERATOR_KEY} b`],
    ["in lower case, as a host", `http://${OPERATOR_KEY.toLowerCase()}.example/`],
    ["percent-encoded", [...key].map((byte) => `%${byte.toString(16)}`).join("")],
    ["as hex", key.toString("hex").toUpperCase()],
    ["as base64 alone", key.toString("base64")],
    ["as base64 in user info", Buffer.from(`u:${OPERATOR_KEY}`).toString("base64")],
    ["as base64 in longer text", Buffer.from(`{"a":"${OPERATOR_KEY}"}`).toString("base64url")],
    ["as a printed buffer", JSON.stringify(key)],
  ])("finds a key %s", (_, text) => {
    expect(findPlantedKeys(text)).not.toEqual([]);
  });

  test("finds nothing in what holds no key", () => {
    expect(findPlantedKeys(`127.0.0.1:8545#a1b2c3 ${Buffer.from("planted").toString("base64")}`)).toEqual([]);
  });

  test("names the line of a file", async () => {
    const folder = await mkdtemp(join(tmpdir(), "hop-gateway-search-"));
    try {
      await writeFile(join(folder, "log"), `one\n{"url":"http://x/${CALLER_KEY}"}\n`);
      expect(await findPlantedKeysInFolder(folder)).toEqual([
        expect.stringContaining(`{"url":"http://x/${CALLER_KEY}"}`),
      ]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("is of gateways with a key in every endpoint", () => {
    const planted = Object.entries(plantKeys(inject("network").environment)).filter(([name]) =>
      name.includes("RPC_URL_"),
    );
    expect(planted.length).toBeGreaterThan(10);
    for (const [, url] of planted) expect(url).toContain(OPERATOR_KEY);
  });
});

describe("the service", () => {
  let service: ServiceProcess;
  let callers: HttpConnections;
  let proxy: RpcProxy;
  beforeAll(async () => {
    proxy = await startRpcProxy(inject("network").chains.polygon?.url ?? "");
    service = await startServiceProcess(await buildService(), {
      RPC_URL_POLYGON: `${proxy.url}/?v=3,${proxy.url}/v3/${OPERATOR_KEY}`,
      QUOTE_MAX_AGE_MS: "1",
      QUOTE_MAX_STALE_MS: "1",
      REQUEST_TIMEOUT_MS: "2000",
    });
    callers = createHttpConnections(service.port);
  });
  afterAll(async () => {
    callers?.close();
    if (service?.isRunning()) service.signal("SIGKILL");
    await proxy?.close();
  });

  const quote = { amount: "25000000", token: "USDT", fromChain: "polygon", toChain: "arbitrum" };
  const procedure = "/hop.bridge.v1.BridgeService/GetQuote";

  /** The same question by GET and by Connect, over both versions of HTTP. */
  function askedWith(rpcUrl: string | undefined): RawHttpRequest[] {
    const query = new URLSearchParams({
      ...quote,
      slippage: "0.5",
      ...(rpcUrl === undefined ? {} : { "rpcUrl[polygon]": rpcUrl }),
    });
    const json = JSON.stringify({
      ...quote,
      slippage: 0.5,
      ...(rpcUrl === undefined ? {} : { rpcUrl: { polygon: rpcUrl } }),
    });
    return [false, true].flatMap((isHttp2): RawHttpRequest[] => [
      { isHttp2, method: "GET", target: `/v1/quote?${query}`, headers: [], body: undefined },
      {
        isHttp2,
        method: "POST",
        target: procedure,
        headers: [["content-type", "application/json"]],
        body: Buffer.from(json),
      },
    ]);
  }

  /** Asks, and gives the statuses; no answer may hold a key or blame us. */
  async function statusesOf(rpcUrl: string | undefined): Promise<number[]> {
    const answers = await Promise.all(askedWith(rpcUrl).map((asked) => callers.send(asked)));
    return answers.map((answer) => {
      if (answer.kind !== "answer") throw new Error(`no answer: ${answer.kind}`);
      expect(findResponseProblem(answer)).toBeUndefined();
      expect(findPlantedKeys(`${JSON.stringify(answer.headers)}${answer.body}`)).toEqual([]);
      return answer.status;
    });
  }

  const behaviours = [
    ["answers", {}, 200],
    ["answers 401", { errorStatus: 401 }, 503],
    ["answers 500", { errorStatus: 500 }, 503],
    ["hangs", { isHanging: true }, 504],
    [
      "answers with an error that repeats the URL",
      { override: () => ({ error: { code: -32000, message: `no such key ${OPERATOR_KEY} ${CALLER_KEY}` } }) },
      503,
    ],
    [
      "says that calls revert, in words that repeat the URL",
      { override: () => ({ error: { code: 3, message: `execution reverted: ${OPERATOR_KEY} ${CALLER_KEY}` } }) },
      200,
    ],
    [
      "answers with a result that repeats the URL",
      { override: () => ({ result: `${OPERATOR_KEY} ${CALLER_KEY}` }) },
      503,
    ],
  ] as const;
  const well = { isHanging: false, errorStatus: undefined, override: undefined };

  test.each(behaviours)("tells no key where an endpoint of ours or a caller's %s", async (_, behaviour, status) => {
    Object.assign(proxy.behaviour, well, behaviour);
    for (const rpcUrl of [undefined, `${proxy.url}/?key=${CALLER_KEY}`]) {
      for (const each of await statusesOf(rpcUrl))
        expect([status, 503, 504].slice(status === 200 ? 0 : 1)).toContain(each);
    }
    Object.assign(proxy.behaviour, well);
  });

  test.each([
    `http://${CALLER_KEY}:${CALLER_KEY}@127.0.0.1:1/`,
    `http://127.0.0.1:1/${CALLER_KEY}`,
    `http://127.0.0.1:99999/${CALLER_KEY}`,
    `ftp://127.0.0.1/${CALLER_KEY}`,
    `${CALLER_KEY}`,
    `http://127.0.0.1:1/${"x".repeat(2_100)}${CALLER_KEY}`,
  ])("tells no key of an endpoint that is refused or not there: %s", async (rpcUrl) => {
    for (const status of await statusesOf(rpcUrl)) expect([400, 503]).toContain(status);
  });

  test("wrote that endpoints failed, and named them by host and digest alone", async () => {
    await expect.poll(() => service.output().stdout).toContain("RPC endpoint failed");
    const { stdout, stderr } = service.output();
    expect(stdout).toMatch(/"endpoint":"127\.0\.0\.1:\d+#[0-9a-f]{6}"/);
    expect(findPlantedKeys(`${stdout}${stderr}`)).toEqual([]);
  });

  test("shows no key in its title or arguments", async () => {
    const { stdout } = await promisify(execFile)("ps", ["-ww", "-o", "comm=,args=", "-p", String(service.pid)]);
    expect(stdout).toContain("main.js");
    expect(findPlantedKeys(stdout)).toEqual([]);
  });

  test("refuses a wrong endpoint at its start without telling it", async () => {
    const command = await buildService();
    const { stderr } = await promisify(execFile)(process.execPath, [command], {
      env: {
        RPC_URL_POLYGON: `ws://x/${OPERATOR_KEY}`,
        RPC_URL_BASE: `http://[${OPERATOR_KEY}`,
        ASSETS_URL: `x:${OPERATOR_KEY}`,
      },
    }).catch((error: { stderr: string }) => error);
    expect(stderr).toContain("RPC_URL_POLYGON");
    expect(findPlantedKeys(stderr)).toEqual([]);
  });
});
