import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { resolveHost } from "../../../../src/chain/custom-endpoints/ssrf-guard.js";
import { type DnsStub, startDnsStub } from "../../../support/stubs/dns-stub.js";

const setup = vi.hoisted(() => {
  // Another file of this worker may have imported the module with the real resolver.
  vi.resetModules();
  return { server: "" };
});
afterAll(() => {
  vi.resetModules();
});
vi.mock("node:dns/promises", async (importOriginal) => {
  const original = await importOriginal<typeof import("node:dns/promises")>();
  // The real resolver, with the stub as its server.
  class Resolver extends original.Resolver {
    constructor(options?: ConstructorParameters<typeof original.Resolver>[0]) {
      super(options);
      this.setServers([setup.server]);
    }
  }
  return { ...original, Resolver };
});

const name = "rpc.example.org";
const never = new AbortController().signal;
let stub: DnsStub;

beforeEach(async () => {
  stub = await startDnsStub();
  setup.server = stub.server;
});
afterEach(() => stub.close());

describe("resolveHost", () => {
  test("returns the addresses of both families with one query each", async () => {
    stub.records.set(`${name} A`, ["93.184.216.34", "10.0.0.1"]).set(`${name} AAAA`, ["2606:2800:220:1::1"]);
    expect(await resolveHost(name, never)).toEqual([
      { address: "93.184.216.34", family: 4 },
      { address: "10.0.0.1", family: 4 },
      { address: "2606:2800:220:1::1", family: 6 },
    ]);
    expect([...stub.queries].sort()).toEqual([`${name} A`, `${name} AAAA`]);
  });

  test.each(["A", "AAAA"])("returns the addresses of a name with only %s records", async (type) => {
    stub.records.set(`${name} ${type}`, [type === "A" ? "1.1.1.1" : "2606:4700::1111"]);
    expect(await resolveHost(name, never)).toHaveLength(1);
  });

  test("returns nothing for an unknown name, whatever the hosts file contains", async () => {
    expect(await resolveHost("nowhere.example.org", never)).toEqual([]);
    expect(await resolveHost("localhost.localdomain", never)).toEqual([]);
  });

  test("stops waiting when the caller leaves", async () => {
    stub.records.set(`${name} A`, "silent").set(`${name} AAAA`, "silent");
    const caller = new AbortController();
    const addresses = resolveHost(name, caller.signal);
    await vi.waitFor(() => expect(stub.queries).toHaveLength(2), { timeout: 60_000 });
    caller.abort();
    expect(await addresses).toEqual([]);
    // A caller that has already left causes no query.
    await expect(resolveHost(name, caller.signal)).rejects.toThrow();
    expect(stub.queries).toHaveLength(2);
  });

  test("returns the addresses of the family that responds", async () => {
    stub.records.set(`${name} A`, ["1.1.1.1"]).set(`${name} AAAA`, "silent");
    expect(await resolveHost(name, never)).toEqual([{ address: "1.1.1.1", family: 4 }]);
    // The query is repeated once, then given up.
    expect(stub.queries.filter((question) => question.endsWith("AAAA"))).toHaveLength(2);
  });
});
