import { execFile } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildQuoteSnippets } from "../../web/shared/api/quote-snippets.js";
import { findTool } from "../support/find-tool.js";
import { buildService } from "../support/service/build-service.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";

// Every example that the quote view offers runs as it is copied, and prints the quote that the page shows.

const project = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);
const folder = useTemporaryFolder();
const route = { token: "ETH", fromChain: "optimism", toChain: "arbitrum", slippage: "0.5" };

let gateway: TestGateway;
let dist: string;
beforeAll(async () => {
  dist = join(await buildService(), "../..");
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

describe.each([
  ["what a sum brings", { amount: "1000000000000000000", ...route }, "estimatedReceived", "arrive"],
  ["what must be sent", { receiveAmount: "1000000000000000000", ...route }, "amountIn", "to send"],
] as const)("%s, by", (_, query, field, text) => {
  const getExample = (language: string): string => buildQuoteSnippets(gateway.url, query)[language] ?? "";

  /** A fee depends on the bytes of the deadline, and so on the second of the request: the first digits are the same. */
  const getStart = (amount: string): string => amount.slice(0, 6);

  async function expectLine(output: string): Promise<void> {
    const { body } = await gateway.get(`/v1/quote?${new URLSearchParams(query)}`);
    const [amount = "", ...words] = output.trim().split(" ");
    expect(getStart(amount)).toBe(getStart((body as Readonly<Record<string, string>>)[field] ?? ""));
    expect(words.join(" ")).toBe(text);
  }

  async function runInShell(example: string, env: NodeJS.ProcessEnv = {}): Promise<string> {
    const { stdout } = await run("bash", ["--norc", "-c", example], { env: { ...process.env, ...env } });
    return `${JSON.parse(stdout)[field]} ${text}`;
  }

  test("curl", async () => {
    await expectLine(await runInShell(getExample("curl")));
  });

  test("buf curl", async () => {
    const path = [join(project, "node_modules/.bin"), process.env.PATH].join(delimiter);
    await expectLine(await runInShell(getExample("buf curl"), { PATH: path, HOME: folder() }));
  });

  test("TypeScript, with the client's package", async () => {
    const place = join(folder(), field);
    await mkdir(join(place, "node_modules"), { recursive: true });
    await symlink(join(dist, "node_modules/hop-gateway-client"), join(place, "node_modules/hop-gateway-client"));
    const compilerOptions = { module: "NodeNext", target: "ES2023", strict: true, types: ["node"] };
    const typeRoots = [join(project, "node_modules/@types")];
    await writeFile(
      join(place, "tsconfig.json"),
      JSON.stringify({ compilerOptions: { ...compilerOptions, typeRoots } }),
    );
    await writeFile(join(place, "package.json"), JSON.stringify({ type: "module" }));
    await writeFile(join(place, "program.ts"), getExample("TypeScript"));
    const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
    const compiled = run(process.execPath, [compiler, "-p", place]);
    expect(await compiled.catch(({ stdout }: { stdout: string }) => ({ stdout }))).toMatchObject({ stdout: "" });
    await expectLine((await run(process.execPath, [join(place, "program.js")])).stdout);
  });

  const python = findTool("python3", "/usr/bin/python3");
  test.skipIf(python === undefined)("Python (needs python3)", async () => {
    await expectLine((await run(python ?? "", ["-c", getExample("Python")])).stdout);
  });

  const go = findTool("golang-go", "/usr/bin/go");
  test.skipIf(go === undefined)("Go (needs golang-go)", async () => {
    const program = join(folder(), `${field}.go`);
    await writeFile(program, `${getExample("Go")}\n`);
    expect((await run("/usr/bin/gofmt", ["-l", program])).stdout).toBe("");
    const caches = { GOCACHE: join(folder(), "go-cache"), GOPATH: join(folder(), "go"), GOTOOLCHAIN: "local" };
    const { stdout } = await run(go ?? "", ["run", program], { env: { ...process.env, ...caches } });
    await expectLine(stdout);
  });
});
