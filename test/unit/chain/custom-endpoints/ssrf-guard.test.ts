import type { LookupAddress } from "node:dns";
import { isIPv6, Socket } from "node:net";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { CustomEndpointsOptions } from "../../../../src/chain/custom-endpoints/custom-endpoints.js";
import { loadConfig } from "../../../../src/config/config.js";
import { never } from "../support/rpc-node-stub.js";
import { createSingleEndpoints } from "../support/single-endpoints.js";
import { forbiddenHosts, invalidUrls, localUrls, PRIVATE_ADDRESS_HOSTS } from "../support/ssrf-urls.js";

const addressOf = (address: string): LookupAddress => ({ address, family: isIPv6(address) ? 6 : 4 });
const optimism = { slug: "optimism", chainId: 10 };

function guarded(options: Partial<CustomEndpointsOptions> = {}) {
  const resolvedNames: string[] = [];
  const resolveHost = async (name: string): Promise<readonly LookupAddress[]> => {
    resolvedNames.push(name);
    return [addressOf(PRIVATE_ADDRESS_HOSTS[name] ?? "93.184.216.34")];
  };
  const endpoints = createSingleEndpoints({ policy: "public", resolveHost, ...options });
  const open = (url: string) => endpoints.open(optimism, url, { caller: "192.0.2.7", signal: never });
  /** Opens a URL and returns "opened" or the error. */
  const outcome = async (url: string): Promise<unknown> => {
    try {
      await (await open(url)).close();
      return "opened";
    } catch (error) {
      return error;
    }
  };
  return { open, outcome, resolvedNames };
}

const refusal = {
  reason: "RPC_URL_FORBIDDEN",
  message: "rpcUrl must be an https URL of at most 2048 bytes on port 443 or 8545 of a public host, without user info",
  field: "rpcUrl[optimism]",
};

describe("a URL of this machine or a private network", () => {
  const urls = [...localUrls, ...forbiddenHosts.map((name) => `https://${name}:%P/`)];

  /** Records all connections. */
  function watchConnections() {
    const connect = vi.spyOn(Socket.prototype, "connect");
    onTestFinished(() => connect.mockRestore());
    return connect;
  }

  test("is rejected with the same message and without a connection, in every spelling", async () => {
    expect(new Set(urls).size).toBe(urls.length);
    expect(urls.length).toBeGreaterThan(300);
    const connect = watchConnections();
    const { outcome, resolvedNames } = guarded();
    const outcomes: unknown[] = [];
    for (const url of urls) outcomes.push(await outcome(url.replaceAll("%P", "8545")));
    expect(urls.filter((_, index) => outcomes[index] === "opened")).toEqual([]);
    expect(outcomes[0]).toMatchObject({ reason: "RPC_URL_FORBIDDEN", field: "rpcUrl[optimism]" });
    expect(new Set(outcomes.map(String)).size).toBe(1);
    // Other names are rejected without a DNS query.
    expect(resolvedNames).toEqual(Object.keys(PRIVATE_ADDRESS_HOSTS));
    expect(connect).not.toHaveBeenCalled();
  });

  test("is connected to, as the test can tell, where it is allowed", async () => {
    const connect = watchConnections();
    const endpoint = await guarded({ policy: "any" }).open("https://127.0.0.1:1/");
    await expect(endpoint.client.send("eth_blockNumber", [], never)).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
    });
    await endpoint.close();
    expect(connect).toHaveBeenCalled();
  });

  test("is rejected when the address is a public one of this machine", async () => {
    const listLocalAddresses = () => ["127.0.0.1", "93.184.216.34", "2606:2800:220:1::1"];
    const { outcome } = guarded({ listLocalAddresses });
    for (const url of ["https://93.184.216.34/", "https://[2606:2800:220:1:0::1]/", "https://rpc.example.org/"]) {
      expect(await outcome(url)).toMatchObject(refusal);
    }
    expect(await outcome("https://93.184.216.35/")).toBe("opened");
  });
});

describe("another URL", () => {
  // Addresses next to a special block, or similar to one.
  test.each([
    ...["1.0.0.0", "1.1.1.1", "9.255.255.255", "11.0.0.0", "93.184.216.34", "100.63.255.255", "100.128.0.0"],
    ...["126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0"],
    ...["172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.31.195.255"],
    ...["192.31.197.0", "192.52.192.255", "192.52.194.0", "192.88.98.255", "192.88.100.0", "192.167.255.255"],
    ...["192.169.0.0", "192.175.47.255", "192.175.49.0", "198.17.255.255", "198.20.0.0", "198.51.99.255"],
    ...["198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255", "1572395042", "0x5db8d822", "0127.0.0.1"],
    ...["[2000::]", "[2001:200::]", "[2001:db7:ffff::1]", "[2001:db9::1]", "[2003::1]", "[2606:4700::1111]"],
    ...["[2001:ffff::1]", "[2620:4f:7fff::1]", "[2620:4f:8001::1]", "[2a00:1450::1]", "[3ffe:ffff::1]"],
    "[3fff:1000::1]",
  ])("is allowed with the address %s", async (host) => {
    expect(await guarded().outcome(`https://${host}/`)).toBe("opened");
  });

  test.each([
    ...["https://rpc.example.org/v3/key?x=1", "https://rpc.example.org:443/", "https://rpc.example.org:8545/"],
    ...["https://RPC.Example.ORG/", "https://bücher.example.org/", "https://xn--bcher-kva.example.org", "https://a.io"],
    ...["https://a.xn--p1ai/", "https://1rpc.io/op", "https://local.example.org", "https://localhost.example.org/"],
    ...[`https://${"a".repeat(63)}.example.org`, `https://rpc.example.org/${"x".repeat(2024)}`],
  ])("is allowed: %s", async (url) => {
    expect(await guarded().outcome(url)).toBe("opened");
  });

  test.each(invalidUrls)("is rejected: %s", async (url) => {
    const { outcome, resolvedNames } = guarded();
    expect(await outcome(url)).toMatchObject(refusal);
    expect(resolvedNames).toEqual([]);
  });

  test("is allowed on the configured ports only", async () => {
    const allowedPorts = [443, 9000];
    const { outcome } = guarded({ allowedPorts });
    expect(await outcome("https://rpc.example.org:9000/")).toBe("opened");
    expect(await outcome("https://rpc.example.org/")).toBe("opened");
    const message = expect.stringContaining("on port 443 or 9000 of a public host");
    expect(await outcome("https://rpc.example.org:8545/")).toMatchObject({ ...refusal, message });
    expect(await guarded({ allowedPorts: [9000] }).outcome("https://rpc.example.org/")).toMatchObject({
      reason: refusal.reason,
    });
  });

  test.each([
    ["public and private", ["93.184.216.34", "10.0.0.1"]],
    ["private and public", ["127.0.0.1", "93.184.216.34"]],
    ["public and private of another family", ["93.184.216.34", "2606:4700::1111", "::1"]],
    ["none", []],
  ])("is rejected with addresses that are %s", async (_, addresses) => {
    const { outcome } = guarded({ resolveHost: async () => addresses.map(addressOf) });
    expect(await outcome("https://rpc.example.org/")).toMatchObject(refusal);
  });

  test("is rejected when its name cannot be resolved", async () => {
    const { outcome } = guarded({ resolveHost: () => Promise.reject(new Error("at 10.0.0.53 nobody answers")) });
    expect(await outcome("https://rpc.example.org/")).toMatchObject(refusal);
  });

  test("is rejected when resolving takes longer than 3 s, or the caller leaves", async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const resolveHost = (_: string, signal: AbortSignal): Promise<never> =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(new Error("given up"))));
    const endpoints = createSingleEndpoints({ policy: "public", resolveHost });
    const ends: unknown[] = [];
    const open = (signal: AbortSignal) =>
      void endpoints
        .open(optimism, "https://rpc.example.org/", { caller: "192.0.2.7", signal })
        .catch((error: unknown) => ends.push(error));
    open(never);
    await vi.advanceTimersByTimeAsync(2_999);
    expect(ends).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(ends).toEqual([expect.objectContaining(refusal)]);

    const caller = new AbortController();
    open(caller.signal);
    caller.abort();
    await vi.advanceTimersByTimeAsync(0);
    expect(ends).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("is rejected under the policy off", async () => {
    const message = "this server does not accept rpcUrl";
    expect(await guarded({ policy: "off" }).outcome("https://rpc.example.org/")).toMatchObject({ ...refusal, message });
  });

  test.each(["http://127.0.0.1:8545/", "https://localhost:1/", "http://[::1]/", "http://node:8545/"])(
    "may be %s in development",
    async (url) => {
      const { outcome, resolvedNames } = guarded({ policy: "any" });
      expect(await outcome(url)).toBe("opened");
      expect(resolvedNames).toEqual([]);
    },
  );

  test.each([
    ...["file:///etc/passwd", "http://user@127.0.0.1/", "ftp://127.0.0.1/", "", "ws://a"],
    `http://a/${"x".repeat(2048)}`,
  ])("is rejected even under the policy any: %s", async (url) => {
    const message = "rpcUrl must be an http or https URL of at most 2048 bytes without user info";
    expect(await guarded({ policy: "any" }).outcome(url)).toMatchObject({ ...refusal, message });
  });
});

describe("the list of allowed ports", () => {
  test.each<[string | undefined, readonly number[]]>([
    [undefined, [443, 8545]],
    ["", [443, 8545]],
    ["443", [443]],
    ["443, 9000 ,65535", [443, 9000, 65535]],
  ])("%o", (text, ports) => {
    expect(loadConfig({ CUSTOM_RPC_PORTS: text }).customRpcPorts).toEqual(ports);
  });

  test.each(["0", "65536", "443,", "https", "443;8545", "-1", "4.43", "1e3", "0x1bb"])("is rejected: %s", (text) => {
    expect(() => loadConfig({ CUSTOM_RPC_PORTS: text })).toThrow(
      "CUSTOM_RPC_PORTS is not a comma-separated list of ports",
    );
  });
});
