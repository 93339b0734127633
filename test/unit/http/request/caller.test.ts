import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { identifyCaller } from "../../../../src/http/request/caller.js";

const v6Socket = "2001:db8:1:2:3:4:5:6";

describe("identifyCaller", () => {
  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::FFFF:c000:201", "192.0.2.1"],
    ["0:0:0:0:0:ffff:192.0.2.1", "192.0.2.1"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:0001:0002::", "2001:db8:1:2::/64"],
    ["2001:db8::1", "2001:db8:0:0::/64"],
    ["::1", "0:0:0:0::/64"],
    ["::", "0:0:0:0::/64"],
    ["1::2:3:4:5", "1:0:0:0::/64"],
    ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
    // Not an IPv4-mapped address, though its end looks like one.
    ["1::ffff:192.0.2.1", "1:0:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    [undefined, ""],
  ])("identifies the peer address %s as %s", (address, caller) => {
    expect(identifyCaller(address, undefined)).toBe(caller);
  });

  test.each([
    ["192.0.2.9", "192.0.2.9"],
    ["198.51.100.1, 192.0.2.9", "192.0.2.9"],
    ["198.51.100.1,192.0.2.9 ", "192.0.2.9"],
    ["192.0.2.9:4711", "192.0.2.9"],
    ["2001:db8:1:2::9", "2001:db8:1:2::/64"],
    ["[2001:db8:1:2::9]", "2001:db8:1:2::/64"],
    ["[2001:db8:1:2::9]:4711", "2001:db8:1:2::/64"],
    ["::ffff:192.0.2.9", "192.0.2.9"],
  ])("identifies X-Forwarded-For %j as %s", (forwardedFor, caller) => {
    expect(identifyCaller(v6Socket, forwardedFor)).toBe(caller);
  });

  test.each([
    ...["", ",", "192.0.2.9,", "unknown", "_hidden", "for=192.0.2.9", "999.1.1.1", "192.0.2.9:", "192.0.2.9:port"],
    ...["[192.0.2.9", "[2001:db8::9]x", "2001:db8::9]", "[]", "1.2.3", "::1::2", "x".repeat(16_000)],
  ])("ignores X-Forwarded-For %j", (forwardedFor) => {
    expect(identifyCaller("192.0.2.1", forwardedFor)).toBe("192.0.2.1");
  });

  test("identifies all spellings of all addresses of one /64, and no others, as one caller", () => {
    const group = fc.integer({ min: 1, max: 0xffff });
    const groups = (length: number) => fc.array(group, { minLength: length, maxLength: length });
    fc.assert(
      fc.property(groups(4), groups(4), groups(4), group, (network, host, other, change) => {
        const write = (all: readonly number[]) => all.map((each) => each.toString(16).padStart(4, "0")).join(":");
        const caller = identifyCaller(write([...network, ...host]), undefined);
        expect(identifyCaller(write([...network, ...other]).toUpperCase(), undefined)).toBe(caller);
        const [last = 0] = network.slice(3);
        const next = [...network.slice(0, 3), (last + change) % 0x10000];
        fc.pre(next[3] !== last);
        expect(identifyCaller(write([...next, ...host]), undefined)).not.toBe(caller);
      }),
    );
  });

  test("returns a short key for any input", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (sent) => {
        expect(identifyCaller(v6Socket, sent).length).toBeLessThanOrEqual(24);
      }),
    );
  });
});
