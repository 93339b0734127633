import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { findAccessibilityViolations, measureHorizontalOverflow } from "../support/browser/browser-page.js";
import { browserPath, launchBrowser } from "../support/browser/launch-browser.js";
import { findTool } from "../support/find-tool.js";
import { buildService } from "../support/service/build-service.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";

// Every program of docs/integrate.md prints what the page says. Their watches go on, because the transfer is not final.

const project = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);
const require = createRequire(import.meta.url);
const folder = useTemporaryFolder();
const HASH = "0x2a6e5685b82b1262614ea73a4000775147af693d53e5feeeeebf33910d264ca5";

let gateway: TestGateway;
let page: string;
let dist: string;
beforeAll(async () => {
  dist = join(await buildService(), "../..");
  gateway = await startGateway();
  page = await readFile(join(project, "docs/integrate.md"), "utf8");
});
afterAll(() => gateway.stop());

/** Returns the code of a section in a language, with the address of the gateway. */
function readCode(heading: string, language: string): string {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  const [, code] = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "m").exec(section) ?? [];
  if (code === undefined) throw new Error(`no ${language} under ${heading}`);
  return code.replaceAll("127.0.0.1:8000", new URL(gateway.url).host);
}

/** Runs a program until it has printed the first event of its watch. Returns what it printed. */
async function runUntilWatched(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  // A group of its own, so that what a shell or `go run` started ends with it.
  const child = spawn(command, args, {
    ...{ cwd: folder(), env: { ...process.env, ...env }, detached: true },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => stop(child));
  let [text, errors] = ["", ""];
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  return new Promise((resolve, reject) => {
    child.stdout.on("data", (chunk) => {
      text += chunk;
      if (/watched: |^data: \{|"resumeToken"/m.test(text)) resolve(text);
    });
    child.on("error", reject);
    child.on("exit", () => reject(new Error(`ended before the watch began: ${text}${errors}`)));
  });
}

function stop({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

/** What each program prints. */
async function expectedLines(): Promise<readonly string[]> {
  const quote = "/v1/quote?amount=25000000&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5";
  const { estimatedReceived } = (await gateway.get(quote)).body as { estimatedReceived: string };
  return [`${estimatedReceived} arrive`, "state: BONDED", "watched: BONDED"];
}

test("the page shows what the programs print", async () => {
  const [, text] = /```text\n([\s\S]*?)```/.exec(page) ?? [];
  expect(
    text
      ?.trim()
      .split("\n")
      .map((line) => line.replace(/^\d+/, "n")),
  ).toEqual((await expectedLines()).map((line) => line.replace(/^\d+/, "n")));
});

/** A fee depends on the bytes of the deadline, and so on the second of the request. */
function withoutLastDigits(lines: readonly string[]): readonly string[] {
  return lines.map((line) => line.replace(/^(\d{4})\d{4} /, "$1.... "));
}

async function expectLines(output: string): Promise<void> {
  expect(withoutLastDigits(output.trim().split("\n"))).toEqual(withoutLastDigits(await expectedLines()));
}

test("curl", async () => {
  const output = await runUntilWatched("bash", ["--norc", "-e", "-c", readCode("curl", "sh")]);
  expect(output).toMatch(/^\{"amountIn":"25000000",.*\}\{"transferId":.*"state":"BONDED",.*\}retry: \d+\n/);
  expect(output).toMatch(/^event: transfer\n(id: .*\n)?data: \{.*"state":"BONDED"/m);
});

test("TypeScript, compiled and run with the client's package", async () => {
  const place = join(folder(), "typescript");
  await mkdir(join(place, "node_modules"), { recursive: true });
  await symlink(join(dist, "node_modules/hop-gateway-client"), join(place, "node_modules/hop-gateway-client"));
  const typeRoots = [join(project, "node_modules/@types")];
  const compilerOptions = { module: "NodeNext", target: "ES2023", strict: true, types: ["node"], typeRoots };
  await writeFile(join(place, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  await writeFile(join(place, "package.json"), JSON.stringify({ type: "module" }));
  await writeFile(join(place, "program.ts"), readCode("TypeScript", "ts"));
  const compiled = run(process.execPath, [require.resolve("typescript/bin/tsc"), "-p", place]);
  expect(await compiled.catch(({ stdout }: { stdout: string }) => ({ stdout }))).toMatchObject({ stdout: "" });
  await expectLines(await runUntilWatched(process.execPath, [join(place, "program.js")]));
});

test.each([
  // What `npm install` writes in an empty folder has no type.
  ["integrate.mjs", {}],
  ["integrate.js", { type: "module" }],
])("TypeScript, as %s", async (file, packageFields) => {
  const place = join(folder(), file.replace(".", "-"));
  await mkdir(join(place, "node_modules"), { recursive: true });
  await symlink(join(dist, "node_modules/hop-gateway-client"), join(place, "node_modules/hop-gateway-client"));
  await writeFile(join(place, "package.json"), JSON.stringify(packageFields));
  await writeFile(join(place, file), readCode("TypeScript", "ts"));
  await expectLines(await runUntilWatched(process.execPath, [join(place, file)]));
});

const python = findTool("python3", "/usr/bin/python3");
test.skipIf(python === undefined)("Python (needs python3)", async () => {
  await writeFile(join(folder(), "program.py"), readCode("Python", "python"));
  await expectLines(await runUntilWatched(python ?? "", ["-u", join(folder(), "program.py")]));
});

const go = findTool("golang-go", "/usr/bin/go");
test.skipIf(go === undefined)("Go (needs golang-go)", async () => {
  const program = join(folder(), "main.go");
  await writeFile(program, readCode("Go", "go"));
  expect((await run("/usr/bin/gofmt", ["-l", program])).stdout).toBe("");
  const env = {
    GOCACHE: join(folder(), "go-cache"),
    GOPATH: join(folder(), "go"),
    GOFLAGS: "-mod=mod",
    GOTOOLCHAIN: "local",
  };
  await expectLines(await runUntilWatched(go ?? "", ["run", program], env));
});

test("buf curl", async () => {
  const path = [join(project, "node_modules/.bin"), process.env.PATH].join(delimiter);
  const code = readCode("buf curl and grpcurl", "sh");
  const output = await runUntilWatched("bash", ["--norc", "-e", "-c", code], { PATH: path, HOME: folder() });
  expect(output).toMatch(/"estimatedReceived": ?"\d{8}"/);
  expect(output).toMatch(new RegExp(`"transactionHash": ?"${HASH}"`));
  expect(output).toMatch(/"transfer": ?\{/);
});

describe.skipIf(browserPath === undefined)("the page of the service (needs chromium)", () => {
  test.each(["light", "dark"] as const)(
    "has the programs, and no accessibility violations in the %s theme",
    async (colorScheme) => {
      const browser = await launchBrowser();
      onTestFinished(() => browser.close());
      const context = await browser.newContext({ colorScheme, viewport: { width: 320, height: 640 } });
      const tab = await context.newPage();
      await tab.goto(`${gateway.url}/docs/integrate`);
      const blocks = [...page.matchAll(/^```\w+\n([\s\S]*?)^```$/gm)].map(([, code]) => code);
      expect(await tab.locator("pre").allTextContents()).toEqual(blocks);
      expect(await tab.locator("h2").allTextContents()).toEqual(
        [...page.matchAll(/^## (.*)$/gm)].map(([, text]) => text),
      );
      for (const width of [320, 390, 1280]) {
        await tab.setViewportSize({ width, height: 640 });
        expect(await findAccessibilityViolations(tab)).toEqual([]);
        expect(await measureHorizontalOverflow(tab)).toBe(0);
      }
      await tab.goto(`${gateway.url}/docs`);
      expect(await tab.locator('header a[href="/docs/integrate"]').count()).toBe(1);
    },
  );
});
