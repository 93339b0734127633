import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { findTool } from "../../support/find-tool.js";
import { NODE_OPTIONS } from "../../support/service/node-options.js";
import { listProjectFiles, readProjectFile, toProjectPath } from "./deploy-files.js";

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
});

describe("the comparison with the SDK", () => {
  const compare = readProjectFile("deploy/systemd/hop-gateway-compare.service");

  test("runs hop-gateway compare with the sandbox of the service, and reports a failure", () => {
    const [bin] = valuesOf("ExecStart").join().split(" ").slice(-1);
    expect(compare).toContain(`\nExecStart=/usr/bin/node ${bin} compare --json\n`);
    expect(compare).toContain("\nOnFailure=hop-gateway-failed@%n.service\n");
    const sandbox = unit.slice(unit.indexOf("ProtectSystem="), unit.indexOf("RestrictAddressFamilies="));
    for (const line of sandbox.split("\n").filter((each) => /^\w/.test(each))) expect(compare).toContain(line);
    for (const line of unit.split("\n").filter((each) => each.startsWith("IPAddress"))) expect(compare).toContain(line);
  });
});

describe.skipIf(analyze === undefined)("systemd-analyze (skipped if not installed)", () => {
  test("accepts the units", async () => {
    const folder = await mkdtemp(join(tmpdir(), "hop-gateway-unit-"));
    try {
      // The path of Node.js on this machine.
      const files = listProjectFiles("deploy/systemd/");
      for (const name of files) {
        const text = readProjectFile(name).replace("/usr/bin/node", process.execPath);
        await writeFile(join(folder, basename(name)), text);
      }
      const units = files.filter((name) => !name.includes("@")).map((name) => join(folder, basename(name)));
      const { stderr } = await run(analyze ?? "", ["verify", "--man=no", ...units]);
      expect(stderr).toBe("");
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test.each(["hop-gateway.service", "hop-gateway-compare.service"])("finds a low exposure of %s", async (name) => {
    const path = toProjectPath(`deploy/systemd/${name}`);
    const { stdout } = await run(analyze ?? "", ["security", "--offline=true", "--no-pager", path]);
    const score = Number(/Overall exposure level for \S+: ([\d.]+)/.exec(stdout)?.[1]);
    expect(score).toBeLessThanOrEqual(1.5);
  });
});
