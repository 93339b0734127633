import { describe, expect, test } from "vitest";
import { type CustomUrlPolicy, openCustomEndpoint, type ResolvedAddress } from "../../../src/chain/custom-endpoint.js";
import { isPublicAddress } from "../../../src/chain/public-address.js";

const v4 = (address: string): ResolvedAddress => ({ address, family: 4 });
const open = (
  url: string,
  policy: CustomUrlPolicy = "public",
  addresses: readonly ResolvedAddress[] = [v4("93.184.216.34")],
) =>
  openCustomEndpoint({ slug: "optimism", chainId: 10 }, url, {
    policy,
    onFailure: () => {},
    resolve: async () => addresses,
  });

const forbidden = {
  reason: "RPC_URL_FORBIDDEN",
  field: "rpcUrl[optimism]",
};

describe("an endpoint that a caller names", () => {
  test.each([
    "https://rpc.example/v3/key",
    "https://rpc.example:443/",
    "https://rpc.example:8545/",
    "https://93.184.216.34/",
    "https://[2606:2800:220:1::1]/",
  ])("may be public: %s", async (url) => {
    await (await open(url)).close();
  });

  test.each([
    "",
    "rpc.example",
    "http://rpc.example/",
    "ftp://rpc.example/",
    "file:///etc/passwd",
    "https://user@rpc.example/",
    "https://user:pass@rpc.example/",
    "https://rpc.example:22/",
    "https://127.0.0.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://017700000001/",
    "https://127.1:8545/",
    "https://169.254.169.254/latest/meta-data",
    "https://10.0.0.1/",
    "https://100.64.0.1/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[fe80::1]/",
    "https://[fd00::1]/",
    `https://rpc.example/${"x".repeat(2048)}`,
  ])("may not be %s", async (url) => {
    await expect(open(url)).rejects.toMatchObject(forbidden);
  });

  test("may not have one private address among its public ones", async () => {
    await expect(open("https://rpc.example/", "public", [v4("93.184.216.34"), v4("10.0.0.1")])).rejects.toMatchObject(
      forbidden,
    );
  });

  test("may not be unresolvable", async () => {
    await expect(open("https://rpc.example/", "public", [])).rejects.toMatchObject(forbidden);
  });

  test("is refused altogether when that is off", async () => {
    await expect(open("https://rpc.example/", "off")).rejects.toMatchObject(forbidden);
  });

  test("may be on this machine in development", async () => {
    await (await open("http://127.0.0.1:8545/", "any")).close();
    await expect(open("file:///etc/passwd", "any")).rejects.toMatchObject(forbidden);
  });
});

describe("a public address", () => {
  test.each(["1.1.1.1", "93.184.216.34", "223.255.255.255", "2606:4700::1111"])("%s", (address) => {
    expect(isPublicAddress(address)).toBe(true);
  });

  test.each([
    "0.0.0.0",
    "172.31.255.255",
    "192.0.2.1",
    "198.19.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "2001:db8::1",
    "2001::1",
    "3fff::1",
    "4000::1",
    "ff02::1",
  ])("%s is none", (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});
