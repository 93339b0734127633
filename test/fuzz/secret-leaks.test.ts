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

// Keys in RPC URLs of the operator and of callers must not appear in any output, however their endpoints fail. All
// output of the run is searched again at its end (test/support/service/local-network-setup.ts).

describe("findPlantedKeys", () => {
  const key = Buffer.from(OPERATOR_KEY);
  test.each([
    ["in plain text", `a ${OPERATOR_KEY} b`],
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

  test("finds nothing in text without a key", () => {
    expect(findPlantedKeys(`polygon[1]#a1b2c3 ${Buffer.from("planted").toString("base64")}`)).toEqual([]);
  });

  test("returns the line of a file", async () => {
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

  test("plantKeys puts a key into every endpoint", () => {
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
      // A key may also stand in the host name.
      RPC_URL_POLYGON: `${proxy.url}/?v=3,${proxy.url}/v3/${OPERATOR_KEY},http://${OPERATOR_KEY}.invalid/`,
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

  /** Returns the same quote request by GET and by Connect, over both versions of HTTP. */
  function createRequests(rpcUrl: string | undefined): RawHttpRequest[] {
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

  /** Sends the requests and returns their statuses. No response may contain a key or report an internal error. */
  async function fetchStatuses(rpcUrl: string | undefined): Promise<number[]> {
    const responses = await Promise.all(createRequests(rpcUrl).map((request) => callers.send(request)));
    return responses.map((response) => {
      if (response.kind !== "answer") throw new Error(`no response: ${response.kind}`);
      expect(findResponseProblem(response)).toBeUndefined();
      expect(findPlantedKeys(`${JSON.stringify(response.headers)}${response.body}`)).toEqual([]);
      return response.status;
    });
  }

  const behaviours = [
    ["responds", {}, 200],
    ["returns 401", { errorStatus: 401 }, 503],
    ["returns 500", { errorStatus: 500 }, 503],
    ["hangs", { isHanging: true }, 504],
    [
      "returns an error that contains the URL",
      { override: () => ({ error: { code: -32000, message: `no such key ${OPERATOR_KEY} ${CALLER_KEY}` } }) },
      503,
    ],
    [
      "returns a revert whose message contains the URL",
      { override: () => ({ error: { code: 3, message: `execution reverted: ${OPERATOR_KEY} ${CALLER_KEY}` } }) },
      200,
    ],
    ["returns a result that contains the URL", { override: () => ({ result: `${OPERATOR_KEY} ${CALLER_KEY}` }) }, 503],
  ] as const;
  const HEALTHY = { isHanging: false, errorStatus: undefined, override: undefined };

  test.each(behaviours)(
    "reveals no key when an endpoint of the operator or of a caller %s",
    async (_, behaviour, status) => {
      Object.assign(proxy.behaviour, HEALTHY, behaviour);
      for (const rpcUrl of [undefined, `${proxy.url}/?key=${CALLER_KEY}`]) {
        for (const actual of await fetchStatuses(rpcUrl))
          expect([status, 503, 504].slice(status === 200 ? 0 : 1)).toContain(actual);
      }
      Object.assign(proxy.behaviour, HEALTHY);
    },
  );

  test.each([
    `http://${CALLER_KEY}:${CALLER_KEY}@127.0.0.1:1/`,
    `http://127.0.0.1:1/${CALLER_KEY}`,
    `http://${CALLER_KEY}.invalid/`,
    `http://127.0.0.1:99999/${CALLER_KEY}`,
    `ftp://127.0.0.1/${CALLER_KEY}`,
    `${CALLER_KEY}`,
    `http://127.0.0.1:1/${"x".repeat(2_100)}${CALLER_KEY}`,
  ])("reveals no key of an endpoint that is rejected or unreachable: %s", async (rpcUrl) => {
    for (const status of await fetchStatuses(rpcUrl)) expect([400, 503]).toContain(status);
  });

  test("logs failed endpoints by chain, place and keyed hash only", async () => {
    Object.assign(proxy.behaviour, HEALTHY, { errorStatus: 500 });
    // The endpoint whose host name holds the key is the last resort.
    await expect
      .poll(async () => {
        await fetchStatuses(undefined);
        return service.output().stdout;
      })
      .toMatch(/"endpoint":"polygon\[3\]#[0-9a-f]{6}"/);
    Object.assign(proxy.behaviour, HEALTHY);
    const { stdout, stderr } = service.output();
    expect(stdout).toMatch(/"endpoint":"polygon\[1\]#[0-9a-f]{6}"/);
    // Callers decide how often their endpoints fail: that is for debugging only.
    expect(stdout).toMatch(/"level":20,[^\n]*"endpoint":"custom"/);
    expect(stdout).not.toMatch(/"level":[3-6]0,[^\n]*"endpoint":"custom"/);
    expect(stdout).not.toMatch(/"endpoint":"[^"]*127\.0\.0\.1/);
    expect(findPlantedKeys(`${stdout}${stderr}`)).toEqual([]);
  });

  test("shows no key in its process title or arguments", async () => {
    const { stdout } = await promisify(execFile)("ps", ["-ww", "-o", "comm=,args=", "-p", String(service.pid)]);
    expect(stdout).toContain("main.js");
    expect(findPlantedKeys(stdout)).toEqual([]);
  });

  test("rejects an invalid endpoint at startup without repeating it", async () => {
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
