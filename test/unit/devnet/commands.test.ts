import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { USAGE } from "../../../devnet/send-arguments.js";

describe("the commands of the local network", () => {
  const { argv } = process;
  afterEach(() => {
    process.argv = argv;
    process.exitCode = undefined;
    vi.restoreAllMocks();
    vi.unstubAllEnvs();
  });

  it("demo reports an invalid environment and exits before it starts anything", async () => {
    const exit = vi.spyOn(process, "exit").mockImplementation((() => {}) as never);
    const [print, printError] = [spyOnConsole("log"), spyOnConsole("error")];
    vi.stubEnv("REQUEST_TIMEOUT_MS", "soon");
    vi.stubEnv("RPC_URL_BASS", "http://127.0.0.1:1");
    await import("../../../devnet/demo.js");
    expect(exit.mock.calls).toEqual([[1]]);
    expect(printError).toHaveBeenCalledTimes(1);
    expect(printError.mock.calls[0]?.[0]).toMatch(/RPC_URL_BASS is not a variable.*REQUEST_TIMEOUT_MS is not/s);
    expect(print).not.toHaveBeenCalled();
  });

  it("demo says how to choose another port if its own is taken, and starts nothing", async () => {
    const exit = vi.spyOn(process, "exit").mockImplementation((() => {}) as never);
    const [print, printError] = [spyOnConsole("log"), spyOnConsole("error")];
    const taken = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void taken.close());
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    vi.stubEnv("PORT", String(port));
    vi.resetModules();
    await import("../../../devnet/demo.js");
    expect(printError.mock.calls).toEqual([[`port ${port} is in use: PORT=0 npm run demo takes a free one`]]);
    expect(exit.mock.calls).toEqual([[1]]);
    expect(print).not.toHaveBeenCalled();
  });

  it("devnet:send --help prints its usage and succeeds", async () => {
    const [print, printError] = [spyOnConsole("log"), spyOnConsole("error")];
    process.argv = [...argv.slice(0, 2), "--help"];
    await import("../../../devnet/send.js");
    expect(print.mock.calls).toEqual([[USAGE]]);
    expect(printError).not.toHaveBeenCalled();
    expect(process.exitCode).toBeUndefined();
  });

  function spyOnConsole(name: "log" | "error") {
    return vi.spyOn(console, name).mockImplementation(() => {});
  }
});
