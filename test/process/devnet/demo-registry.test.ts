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

describe("the demos that run", () => {
  const folder = useTemporaryFolder();
  let dead = 0;
  beforeAll(async () => {
    const child = spawn(process.execPath, ["--version"], { stdio: "ignore" });
    dead = child.pid ?? 0;
    await once(child, "exit");
  });

  it("are none before the first", async () => {
    expect(await findRunningDemo(`${folder()}/none`)).toBeUndefined();
  });

  it("are found while they run, the youngest first, whichever ends first", async () => {
    const endOlder = await registerDemo(demo("older"), process.ppid, folder());
    expect(await findRunningDemo(folder())).toEqual(demo("older"));
    const endYounger = await registerDemo(demo("younger"), process.pid, folder());
    expect(await findRunningDemo(folder())).toEqual(demo("younger"));
    await endYounger();
    expect(await findRunningDemo(folder())).toEqual(demo("older"));
    await endOlder();
    expect(await findRunningDemo(folder())).toBeUndefined();
  });

  it("are not those whose process is gone without a word", async () => {
    await registerDemo(demo("killed"), dead, folder());
    expect(await findRunningDemo(folder())).toBeUndefined();
    expect(await readdir(folder())).toEqual([]);
  });
});
