import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { findTool } from "../../support/find-tool.js";
import { NODE_OPTIONS } from "../../support/service/node-options.js";
import { readProjectFile, toProjectPath } from "./deploy-files.js";

const analyze = findTool("systemd-analyze (Debian: systemd)", "/usr/bin/systemd-analyze");
const run = promisify(execFile);
const file = "deploy/systemd/hop-gateway.service";
const unit = readProjectFile(file);
const valuesOf = (name: string): readonly string[] =>
  [...unit.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].map(([, value = ""]) => value);

describe("the systemd unit", () => {
  test("starts the output of deploy/build.sh with the environment file", () => {
    const bin = JSON.parse(readProjectFile("package.json")).bin["hop-gateway"];
    expect(valuesOf("ExecStart")).toEqual([`/usr/bin/node ${NODE_OPTIONS.join(" ")} /opt/hop-gateway/${bin}`]);
    expect(unit).toContain("deploy/build.sh /opt/hop-gateway\n");
    expect(valuesOf("EnvironmentFile")).toEqual(["-/etc/hop-gateway/hop-gateway.env"]);
    expect(unit).toContain("-m 0600 deploy/hop-gateway.env.example /etc/hop-gateway/hop-gateway.env");
  });

  test("allows more time to stop than the request timeout", () => {
    expect(Number(valuesOf("TimeoutStopSec")[0])).toBeGreaterThan(11);
    // The primary stops its workers itself and waits for them.
    expect(valuesOf("KillMode")).toEqual(["mixed"]);
  });

  test("blocks private networks except localhost", () => {
    const denied = valuesOf("IPAddressDeny").flatMap((value) => value.split(" "));
    expect(denied).toEqual(
      expect.arrayContaining([
        ...[
          "10.0.0.0/8",
          "172.16.0.0/12",
          "192.168.0.0/16",
          "100.64.0.0/10",
          "169.254.0.0/16",
          "fc00::/7",
          "fe80::/10",
          "ff00::/8",
        ],
      ]),
    );
    expect(valuesOf("IPAddressAllow")).toEqual(["localhost"]);
  });

  test("allows what the service needs", () => {
    // The SSRF guard reads this machine's addresses over netlink.
    expect(valuesOf("RestrictAddressFamilies")[0]?.split(" ")).toContain("AF_NETLINK");
    expect(valuesOf("MemoryDenyWriteExecute")).toEqual([]);
    expect(valuesOf("StateDirectory")).toEqual(["hop-gateway"]);
  });

  test.skipIf(analyze === undefined)("passes systemd-analyze (skipped if not installed)", async () => {
    const folder = await mkdtemp(join(tmpdir(), "hop-gateway-unit-"));
    try {
      // The path of Node.js on this machine.
      const local = join(folder, "hop-gateway.service");
      await writeFile(local, unit.replace("/usr/bin/node", process.execPath));
      const { stderr } = await run(analyze ?? "", ["verify", "--man=no", local]);
      expect(stderr).toBe("");
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test.skipIf(analyze === undefined)("has a low exposure score (skipped without systemd-analyze)", async () => {
    const { stdout } = await run(analyze ?? "", ["security", "--offline=true", "--no-pager", toProjectPath(file)]);
    const score = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1]);
    expect(score).toBeLessThanOrEqual(1.5);
  });
});
