import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { beforeAll, describe, expect, it } from "vitest";
import { findRunningDemo, type RunningDemo, registerDemo } from "../../../devnet/demo-registry.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

const demo = (name: string): RunningDemo => ({
  gatewayUrl: `http://${name}`,
  chains: { base: { chainId: 8453, url: "http://x" } },
});

describe("the registry of running demos", () => {
  const folder = useTemporaryFolder();
  let deadPid = 0;
  beforeAll(async () => {
    const child = spawn(process.execPath, ["--version"], { stdio: "ignore" });
    deadPid = child.pid ?? 0;
    await once(child, "exit");
  });

  it("is empty before the first demo", async () => {
    expect(await findRunningDemo(`${folder()}/none`)).toBeUndefined();
  });

  it("returns the youngest running demo, whichever exits first", async () => {
    const unregisterOlder = await registerDemo(demo("older"), process.ppid, folder());
    expect(await findRunningDemo(folder())).toEqual(demo("older"));
    const unregisterYounger = await registerDemo(demo("younger"), process.pid, folder());
    expect(await findRunningDemo(folder())).toEqual(demo("younger"));
    await unregisterYounger();
    expect(await findRunningDemo(folder())).toEqual(demo("older"));
    await unregisterOlder();
    expect(await findRunningDemo(folder())).toBeUndefined();
  });

  it("removes a demo whose process was killed", async () => {
    await registerDemo(demo("killed"), deadPid, folder());
    expect(await findRunningDemo(folder())).toBeUndefined();
    expect(await readdir(folder())).toEqual([]);
  });
});
