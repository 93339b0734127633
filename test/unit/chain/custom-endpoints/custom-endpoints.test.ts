import type { LookupAddress } from "node:dns";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { type AddressInfo, connect as connectTcp, createServer, type LookupFunction, Socket } from "node:net";
import tls from "node:tls";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test, vi } from "vitest";
import { ChainClients } from "../../../../src/chain/chains.js";
import {
  CustomEndpoints,
  type CustomEndpointsOptions,
  MAX_CUSTOM_RESPONSE_MEMORY_BYTES,
} from "../../../../src/chain/custom-endpoints/custom-endpoints.js";
import { MAX_CONNECTIONS_PER_NAME } from "../../../../src/chain/custom-endpoints/host-limits.js";
import { closeAfterTest } from "../../../support/close-after-test.js";
import { sendJson, startHttpStub } from "../../../support/stubs/http-stub.js";
import { logFilter } from "../support/log-chain-stub.js";
import {
  answerStatus,
  disconnect,
  hang,
  never,
  type RpcNodeStub,
  rejecting,
  startRpcNodeStub,
  UNAVAILABLE_ERROR,
} from "../support/rpc-node-stub.js";
import { createSingleEndpoints } from "../support/single-endpoints.js";

const MEBIBYTE = 1024 * 1024;
const by = { caller: "192.0.2.7", signal: never };
const optimism = { slug: "optimism", chainId: 1 };
const PUBLIC_ADDRESS = { address: "93.184.216.34", family: 4 };

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

function endpoints(options: Partial<CustomEndpointsOptions> = {}) {
  return createSingleEndpoints({ policy: "any", ...options });
}

const openAt = async (url: string, options: Partial<CustomEndpointsOptions> = {}) =>
  closeAfterTest(await endpoints(options).open(optimism, url, by));

/** Starts a node that behaves so, and opens it. */
async function openNode(behaviour: Partial<RpcNodeStub> = {}) {
  const node = await startRpcNodeStub(behaviour);
  const { client } = await openAt(node.url);
  return {
    node,
    client,
    reads: {
      send: () => client.send("eth_blockNumber", [], never),
      batch: () => client.sendBatch([{ method: "eth_gasPrice", params: [] }], never),
      logs: (signal = never) => client.getLogs({ filter: logFilter, range: { from: 1, to: 2 } }, signal),
    },
  };
}

/** Target of a connection. */
interface Connection {
  readonly host: string | undefined;
  readonly servername: string | undefined;
  readonly port: unknown;
  readonly addresses: unknown;
}

/** Redirects every TLS connection to a local node without TLS, and returns the requested targets. */
function divertTls(node: { readonly url: string }): readonly Connection[] {
  const made: Connection[] = [];
  const connect = (options: tls.ConnectionOptions): Socket => {
    const { host = "", servername, port } = options;
    const lookup = options.lookup as LookupFunction;
    const record = (error: Error | null, addresses: unknown): void => {
      made.push({ host, servername, port, addresses: error ?? addresses });
    };
    lookup(host, { all: true }, record);
    const socket = connectTcp(Number(new URL(node.url).port), "127.0.0.1");
    return socket.once("connect", () => socket.emit("secureConnect"));
  };
  vi.spyOn(tls, "connect").mockImplementation(connect as never);
  return made;
}

describe("the host name of a custom endpoint", () => {
  test("is connected to at the validated addresses only, even when it resolves differently later", async () => {
    const node = await startRpcNodeStub();
    const made = divertTls(node);
    const answers: LookupAddress[][] = [
      [PUBLIC_ADDRESS, { address: "2606:4700::1111", family: 6 }],
      [{ address: "127.0.0.1", family: 4 }],
    ];
    const checked = answers[0];
    const resolveHost = vi.fn(async () => answers.shift() ?? []);
    const { client } = await openAt("https://rpc.example.org:8545/secret-key", { policy: "public", resolveHost });
    const reads = ["eth_blockNumber", "eth_gasPrice", "eth_syncing"].map((method) => client.send(method, [], never));
    expect(await Promise.all(reads)).toEqual(["0x1", "0x1", "0x1"]);
    expect(made.length).toBeGreaterThan(1);
    for (const connection of made) {
      const { host, servername, port, addresses } = connection;
      expect([host, servername, Number(port)]).toEqual(["rpc.example.org", "rpc.example.org", 8545]);
      expect(addresses).toEqual(checked);
    }
    expect(resolveHost).toHaveBeenCalledTimes(1);
    expect(resolveHost).toHaveBeenCalledWith("rpc.example.org", expect.any(AbortSignal));
  });

  test("is rejected when it resolves to a private address the next time", async () => {
    const answers = ["93.184.216.34", "127.0.0.1"].map((address) => [{ address, family: 4 }]);
    const custom = endpoints({ policy: "public", resolveHost: async () => answers.shift() ?? [] });
    closeAfterTest(await custom.open(optimism, "https://rpc.example.org/", by));
    await expect(custom.open(optimism, "https://rpc.example.org/", by)).rejects.toMatchObject({
      reason: "RPC_URL_FORBIDDEN",
    });
  });

  test("resolves to one address when one is requested", async () => {
    const lookups: LookupFunction[] = [];
    vi.spyOn(tls, "connect").mockImplementation(((options: tls.ConnectionOptions) => {
      lookups.push(options.lookup as LookupFunction);
      return new Socket().destroy(new Error("no network here"));
    }) as never);
    const resolveHost = async () => [{ address: "2606:4700::1111", family: 6 }];
    const { client } = await openAt("https://rpc.example.org/", { policy: "public", resolveHost });
    await expect(client.send("eth_blockNumber", [], never)).rejects.toMatchObject(UNAVAILABLE_ERROR);
    const given = vi.fn();
    lookups[0]?.("rpc.example.org", {}, given);
    expect(given.mock.calls).toEqual([[null, "2606:4700::1111", 6]]);
  });
});

describe("a custom endpoint", () => {
  test("is sent a read once, and asked for its chain id once", async () => {
    const { node, client } = await openNode();
    await client.send("eth_blockNumber", [], never);
    await client.send("eth_gasPrice", [], never);
    expect(node.requests).toEqual([["eth_chainId", "eth_blockNumber"], ["eth_gasPrice"]]);
    node.intercept = answerStatus(503);
    await expect(client.send("eth_syncing", [], never)).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(node.requests.slice(2)).toEqual([["eth_syncing"]]);
  });

  test("is sent a log search a few times at most, each with fewer blocks", async () => {
    const { node, client } = await openNode(rejecting({ code: -32602, message: "too many blocks" }));
    const search = { filter: logFilter, range: { from: 0, to: 10_000_000 }, newestFirst: true };
    await expect(client.getLogs(search, never)).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(node.requests.length).toBeLessThanOrEqual(10);
  });

  test("shares no connection with another caller", async () => {
    const node = await startRpcNodeStub();
    /** Ports of the connections, by the endpoint that made them. */
    const ports = [0, 1, 2].map(() => new Set<number | undefined>());
    for (const endpointPorts of ports) {
      node.intercept = ({ response }) => {
        endpointPorts.add(response.socket?.remotePort);
        return false;
      };
      // The other endpoints stay open.
      const { client } = await openAt(node.url);
      await client.send("eth_blockNumber", [], never);
      await client.send("eth_blockNumber", [], never);
    }
    const counts = ports.map(({ size }) => size);
    expect(Math.min(...counts)).toBeGreaterThan(0);
    expect(new Set(ports.flatMap((own) => [...own])).size).toBe(counts.reduce((sum, count) => sum + count));
  });

  test("can report a revert", async () => {
    const { client } = await openNode(rejecting({ code: 3, message: "execution reverted", data: "0x" }));
    await expect(client.send("eth_call", [], never)).rejects.toMatchObject({ name: "RevertError" });
  });

  test.each<[string, RpcNodeStub["intercept"]]>([
    ["a server error", ({ response }) => !!response.writeHead(500).end("secret of the inside")],
    ["no access", answerStatus(403)],
    ["other than JSON", ({ response }) => !!response.end("<html>")],
    ["other than JSON-RPC", ({ response }) => !!response.end('{"ok":true}')],
    ["a connection that breaks", disconnect],
  ])("fails with the same error for %s", async (_, intercept) => {
    const { reads } = await openNode({ intercept });
    for (const read of Object.values(reads)) await expect(read()).rejects.toMatchObject(UNAVAILABLE_ERROR);
  });

  /** Returns correct responses after `space` bytes of whitespace. */
  const encodeValid = ({ calls, isBatch }: Parameters<RpcNodeStub["intercept"]>[0], space = 0): string => {
    const responses = calls.map(({ id }) => ({ jsonrpc: "2.0", id, result: "0x1" }));
    return " ".repeat(space) + JSON.stringify(isBatch ? responses : responses[0]);
  };

  test.each<[string, RpcNodeStub["intercept"]]>([
    ["long", (request) => !!request.response.end(encodeValid(request, MEBIBYTE))],
    [
      "long, without a Content-Length",
      (request) => request.response.write(" ") && !!request.response.end(encodeValid(request, MEBIBYTE)),
    ],
    [
      "compressed",
      (request) => !!request.response.setHeader("content-encoding", "gzip").end(gzipSync(encodeValid(request))),
    ],
    [
      "marked as compressed",
      (request) => !!request.response.setHeader("content-encoding", "br").end(encodeValid(request)),
    ],
  ])("fails with the same error for a valid response that is %s", async (_, intercept) => {
    const { reads } = await openNode({ intercept });
    await expect(reads.send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
  });

  test("can respond with almost 1 MiB, uncompressed", async () => {
    const encodings = new Set<unknown>();
    const { reads } = await openNode({
      intercept(request) {
        encodings.add(request.response.req.headers["accept-encoding"]);
        return !!request.response.end(encodeValid(request, MEBIBYTE - 1000));
      },
    });
    expect(await reads.send()).toBe("0x1");
    expect([...encodings]).toEqual(["identity"]);
  });

  test("fails with the same error for a closed port and for another chain", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    const { client } = await openAt(`http://127.0.0.1:${port}/`);
    await expect(client.send("eth_blockNumber", [], never)).rejects.toMatchObject(UNAVAILABLE_ERROR);
    const { reads } = await openNode({ chainId: 42 });
    await expect(reads.send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
  });

  test("that answers nested lists without end is asked five times a second, and less often than one that fails", async () => {
    const [nesting, failing] = await Promise.all(
      ["[".repeat(MEBIBYTE), "<html>"].map((body) =>
        startRpcNodeStub({ intercept: ({ response }) => !!response.end(body) }),
      ),
    );
    const custom = endpoints();
    /** Asks sixteen endpoints at a time, five times, and returns for how many seconds. */
    const askOften = async (url = "", caller = ""): Promise<number> => {
      const began = performance.now();
      for (let round = 0; round < 5; round++) {
        const ask = async (): Promise<void> => {
          const { client, close } = await custom.open(optimism, url, { caller, signal: never });
          await expect(client.send("eth_blockNumber", [], never)).rejects.toThrow();
          await close();
        };
        await Promise.all(Array.from({ length: 16 }, ask));
      }
      return (performance.now() - began) / 1000;
    };
    const seconds = await askOften(nesting?.url, "attacker");
    await askOften(failing?.url, "other");
    // Those that are sent at once; then five a second, those of the first second at once, and one second is waited for.
    expect(nesting?.requests.length).toBeLessThanOrEqual(16 + 5 * (seconds + 2));
    expect(failing?.requests).toHaveLength(80);
  });

  test.each([301, 302, 303, 307, 308])("is not followed through redirects: %i", async (status) => {
    const canary = closeAfterTest(await startHttpStub((_, response) => sendJson(response, {})));
    const { reads } = await openNode({ intercept: answerStatus(status, { location: canary.url }) });
    await expect(reads.send()).rejects.toMatchObject(UNAVAILABLE_ERROR);
    expect(canary.requests).toEqual([]);
  });

  test.each(["send", "batch", "logs"] as const)("has 3 s for a read: %s", async (kind) => {
    // The node begins a response and never completes it.
    const { node, reads } = await openNode({ intercept: ({ response }) => response.writeHead(200).write(" ") });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval"] });
    const ends: unknown[] = [];
    const read = reads[kind]().catch((error: unknown) => ends.push(error));
    while (node.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(2_900);
    expect(ends).toEqual([]);
    // Opening the endpoint has used some of the 3 s.
    await vi.advanceTimersByTimeAsync(100);
    await read;
    expect(ends).toEqual([expect.objectContaining(UNAVAILABLE_ERROR)]);
  });

  test("fails with the same error for searches that time out, also while they are queued", async () => {
    const { reads } = await openNode({ intercept: hang });
    const caller = new AbortController();
    const searches = Promise.allSettled(Array.from({ length: 20 }, () => reads.logs(caller.signal)));
    caller.abort();
    const reason = expect.objectContaining(UNAVAILABLE_ERROR);
    expect(await searches).toEqual(Array.from({ length: 20 }, () => ({ status: "rejected", reason })));
  });

  test("has 3 s for a read, including the DNS lookup", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    divertTls(await startRpcNodeStub({ intercept: hang }));
    const resolveHost = async () => {
      await vi.advanceTimersByTimeAsync(2_000);
      return [PUBLIC_ADDRESS];
    };
    const { client } = await openAt("https://rpc.example.org/", { policy: "public", resolveHost });
    const ends: unknown[] = [];
    const read = client.send("eth_blockNumber", [], never).catch((error: unknown) => ends.push(error));
    await vi.advanceTimersByTimeAsync(999);
    expect(ends).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    await read;
    expect(ends).toEqual([expect.objectContaining(UNAVAILABLE_ERROR)]);
  });
});

describe("open custom endpoints", () => {
  const url = "http://127.0.0.1:1/";
  const tooMany = { reason: "RATE_LIMITED", field: "rpcUrl[optimism]", retryAfterSeconds: 1 };

  const full = { reason: "OVERLOADED", retryAfterSeconds: 1, message: "too many custom endpoints are in use" };

  const openMany = (custom: ReturnType<typeof endpoints>, caller: string, count: number) => {
    const open = async () => closeAfterTest(await custom.open(optimism, url, { caller, signal: never }));
    return Promise.all(Array.from({ length: count }, open));
  };

  test("are limited to 16 per caller, and closed or rejected ones free their slots", async () => {
    const custom = endpoints();
    const [first] = await openMany(custom, "a", 16);
    await expect(openMany(custom, "a", 1)).rejects.toMatchObject(tooMany);
    await first?.close();
    for (let turn = 0; turn < 3; turn += 1) {
      await expect(custom.open(optimism, "file:///", { caller: "a", signal: never })).rejects.toMatchObject({
        reason: "RPC_URL_FORBIDDEN",
      });
    }
    await openMany(custom, "a", 1);
    await expect(openMany(custom, "a", 1)).rejects.toMatchObject(tooMany);
    await openMany(custom, "b", 1);
  });

  test("are limited to 64 in total", async () => {
    const custom = endpoints();
    let last: { close(): Promise<void> } | undefined;
    for (const caller of ["a", "b", "c", "d"]) last = (await openMany(custom, caller, 16))[0];
    await expect(openMany(custom, "e", 1)).rejects.toMatchObject(full);
    await last?.close();
    await openMany(custom, "e", 1);
    await expect(openMany(custom, "f", 1)).rejects.toMatchObject(full);
  });

  test("are limited as configured", async () => {
    const custom = endpoints({ limits: { perCaller: 1, total: 2 } });
    await openMany(custom, "a", 1);
    await expect(openMany(custom, "a", 1)).rejects.toMatchObject(tooMany);
    await openMany(custom, "b", 1);
    await expect(openMany(custom, "c", 1)).rejects.toMatchObject(full);
  });

  test("that are closed while they connect count as connections to their host until then", async () => {
    const pending: Socket[] = [];
    vi.spyOn(tls, "connect").mockImplementation((() => {
      const socket = new Socket();
      pending.push(socket);
      return socket;
    }) as never);
    const custom = endpoints();
    /** Starts a read, waits for its connection if there is to be one, and leaves. */
    const connectAndLeave = async (expected: number): Promise<void> => {
      const endpoint = await custom.open(optimism, "https://127.0.0.1:1/", by);
      const read = endpoint.client.send("eth_blockNumber", [], never).catch(() => {});
      await vi.waitFor(() => expect(pending).toHaveLength(expected), { timeout: 60_000 });
      await endpoint.close();
      await read;
    };
    // Half of those to one host, for one caller.
    for (let count = 1; count <= MAX_CONNECTIONS_PER_NAME / 2; count += 1) await connectAndLeave(count);
    await connectAndLeave(MAX_CONNECTIONS_PER_NAME / 2);
    for (const socket of pending) socket.destroy(new Error("no network here"));
    await connectAndLeave(MAX_CONNECTIONS_PER_NAME / 2 + 1);
    for (const socket of pending) socket.destroy(new Error("no network here"));
  });

  test("of all callers share one budget for the responses that are being read", async () => {
    // Each begins a long response and never completes it.
    const node = await startRpcNodeStub({
      intercept: ({ response }) => response.write(" ".repeat(900 * 1024)) || true,
    });
    divertTls(node);
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    let resolved = 0;
    const resolveHost = async () => {
      resolved += 1;
      return [{ address: `93.184.216.${resolved}`, family: 4 }];
    };
    const custom = endpoints({ policy: "public", resolveHost });
    const refused: unknown[] = [];
    const others: unknown[] = [];
    for (let index = 0; index < 64; index += 1) {
      const caller = { caller: `caller ${index % 8}`, signal: never };
      const { client } = closeAfterTest(await custom.open(optimism, `https://rpc${index}.example.org/`, caller));
      client.send("eth_blockNumber", [], never).catch((error: { reason?: string }) => {
        (error.reason === "OVERLOADED" ? refused : others).push(error);
      });
    }
    const heldAtMost = MAX_CUSTOM_RESPONSE_MEMORY_BYTES / (900 * 1024);
    while (refused.length < 64 - heldAtMost) await new Promise((resolve) => setImmediate(resolve));
    expect(others).toEqual([]);
    expect(refused[0]).toMatchObject({ retryAfterSeconds: 1, message: expect.stringContaining("try again later") });
  });

  test("at one host are resolved once per call", async () => {
    const resolveHost = vi.fn(async () => [PUBLIC_ADDRESS]);
    const custom = new CustomEndpoints({ policy: "public", onFailure: () => {}, resolveHost });
    const session = closeAfterTest(custom.startSession(by));
    await Promise.all(["a", "b", "c"].map((path) => session.open(optimism, `https://rpc.example.org/${path}`)));
    expect(resolveHost).toHaveBeenCalledTimes(1);
  });

  const networks = { mainnet: new Map(["optimism", "base"].map((slug) => [slug, { chainId: 1, urls: [] }])) };
  const createChains = (customUrlPolicy: "any" | "public") =>
    closeAfterTest(new ChainClients({ networks, customUrlPolicy, onFailure: () => {} }));

  test("are closed after the work, however it ends, and when one of several cannot be opened", async () => {
    const node = await startRpcNodeStub();
    const chains = createChains("any");
    const use = (urls: readonly string[], work: () => Promise<string>) => {
      const custom = new Map(urls.map((each, at) => [["optimism", "base"][at] ?? "", each]));
      return chains.withCustomEndpoints("mainnet", custom, work, by);
    };
    const finish = async () => "done";
    for (let turn = 0; turn < 20; turn += 1) {
      expect(await use([node.url, node.url], finish)).toBe("done");
      await expect(use([node.url, node.url], () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
      await expect(use([node.url, "file:///"], finish)).rejects.toMatchObject({ field: "rpcUrl[base]" });
      await expect(use(["file:///", node.url], finish)).rejects.toMatchObject({ field: "rpcUrl[optimism]" });
    }
    // Eight concurrent pairs fit; the ninth does not.
    let release = (_: string): void => {};
    const released = new Promise<string>((resolve) => {
      release = resolve;
    });
    const running = Array.from({ length: 8 }, () => use([node.url, node.url], () => released));
    await expect(use([node.url], finish)).rejects.toMatchObject(tooMany);
    release("done");
    expect(await Promise.all(running)).toHaveLength(8);
  });

  test("are closed when they open after another has failed to open", async () => {
    vi.spyOn(Resolver.prototype, "resolve6").mockResolvedValue([]);
    vi.spyOn(Resolver.prototype, "resolve4").mockImplementation((async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return ["93.184.216.34"];
    }) as never);
    const chains = createChains("public");
    const custom = new Map([
      ["optimism", "file:///"],
      ["base", "https://rpc.example.org/"],
    ]);
    for (let turn = 0; turn < 20; turn += 1) {
      await expect(chains.withCustomEndpoints("mainnet", custom, async () => "done", by)).rejects.toMatchObject({
        reason: "RPC_URL_FORBIDDEN",
      });
    }
  });
});
