import { execFile, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { parseCommandLine } from "../../../src/commands/command-line.js";
import { ENVIRONMENT_VARIABLES } from "../../../src/config/environment-table.js";
import { isFullEffort } from "../../support/effort.js";
import { buildService } from "../../support/service/build-service.js";
import { useGateway } from "../../support/service/in-process-gateway.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Every command of the README and of docs/, in a block or in a sentence, runs in a test: here, or in the one that stands beside it
// below. What needs more than this machine stands there with the reason. All are parsed by a shell.

const project = fileURLToPath(new URL("../../..", import.meta.url));
const run = promisify(execFile);
const folder = useTemporaryFolder();

const PAGES = [
  ...["README.md", "CONTRIBUTING.md", "SECURITY.md", "packages/client/README.md"],
  ...readdirSync(join(project, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

/** The tests that run commands, by what the commands begin with. */
const RUN_BY: Readonly<Record<string, string>> = {
  "npm ci && npm run demo": "test/e2e/commands/demo.test.ts",
  "npm run demo": "test/e2e/commands/demo.test.ts",
  "npm start": "test/e2e/commands/demo.test.ts",
  "npm ci && npm start": "test/e2e/commands/demo.test.ts",
  "hop-gateway --help": "test/e2e/commands/command-line.test.ts",
  "hop-gateway check": "test/e2e/commands/check.test.ts",
  "hop-gateway compare": "test/e2e/commands/compare.test.ts",
  "hop-gateway index": "test/process/backfill-index.test.ts",
  "hop-gateway replay": "test/e2e/commands/replay.test.ts",
  "node dist/src/main.js": "test/e2e/commands/command-line.test.ts",
  "node integrate.mjs": "test/examples/integrate.test.ts",
  "python3 integrate.py": "test/examples/integrate.test.ts",
  "go run integrate.go": "test/examples/integrate.test.ts",
  "python3 -m grpc_tools.protoc": "test/examples/examples.test.ts",
  "npm run docs:": "test/unit/docs/generated-documents.test.ts",
  "npm run tarball": "test/process/package/package.test.ts",
  "examples/curl.sh": "test/examples/examples.test.ts",
  "npm run build && node dist/examples/connect.js": "test/examples/examples.test.ts",
  "npm run build && node dist/examples/fetch.js": "test/examples/examples.test.ts",
  "npm run build && node dist/examples/withdraw.js": "test/examples/examples.test.ts",
  "python3 examples/withdraw.py": "test/examples/examples.test.ts",
  "mkdir -p stubs": "test/examples/examples.test.ts",
  "base=http": "test/examples/integrate.test.ts",
  "service=http": "test/examples/integrate.test.ts",
  "npm run tarball:client": "test/process/package/client-package.test.ts",
  "npm install <clone>": "test/process/package/client-package.test.ts",
};

/** Commands that no test runs, by what they begin with, and why. */
const NOT_RUN: Readonly<Record<string, string>> = {
  "npm ci && npm test": "it runs this test",
  "npm ci        #": "installs what runs this test",
  "npm test      #": "it runs this test",
  ".ci/with-node": "downloads versions of Node.js; .ci/run uses it",
  grpcurl: "is in no package of Debian; buf curl sends the same in test/examples/integrate.test.ts",
  "service=hop": "grpcurl is in no package of Debian; buf curl sends the same in test/examples/integrate.test.ts",
  "PORT=8001 npm start": "reads mainnet",
  "ASSETS_URL=off": "reads mainnet",
  "INDEX=sqlite:hop.db npm": "reads mainnet; test/process/backfill-index.test.ts runs the command on the local network",
  "docker build":
    "needs Docker; test/process/deploy/container.test.ts reads the Containerfile, .ci/deploy.sh runs what it builds",
  "docker compose": "needs Docker; test/process/deploy/container.test.ts renders the file",
  "kubectl apply": "needs a cluster; test/process/deploy/kubernetes.test.ts reads the files",
  "npm run bench:": "a benchmark: no verdict may depend on the speed of a machine",
  "TRANSFERS=": "a benchmark: no verdict may depend on the speed of a machine",
  "QUOTES_PER_SECOND=": "a benchmark; test/unit/docs/generated-documents.test.ts computes its tables",
  "npm run test:": "runs tests",
  CHAOS_KILLS: "runs tests",
  "npm run golden:add": "writes a test; test/parity/golden-differences.test.ts replays those that exist",
  "npm ci": "installs what runs this test",
  "npx openapi-typescript": "downloads from a registry; npm run generate runs the same on gen/openapi.json",
  "pip install": "downloads from a registry",
  "buf generate": "needs plugins of the caller's choice; npm run generate runs it for TypeScript",
  "npm install @opentelemetry": "installs from a registry; test/e2e/observability/tracing.test.ts loads an SDK",
  OTEL_EXPORTER: "needs a collector; test/e2e/observability/tracing.test.ts receives the spans",
};

/** Variables of commands that the service itself does not read. */
const OTHER_VARIABLES = [
  ...["OTEL_EXPORTER_OTLP_ENDPOINT", "PYTHONPATH", "CHAOS_KILLS", "CHAOS_SEED"],
  ...["TRANSFERS", "QUOTES_PER_SECOND", "WATCHERS"],
];

interface Command {
  readonly page: string;
  readonly text: string;
}

const INLINE_COMMAND =
  /`((?:[A-Z_]+=\S+ )*(?:npm|npx|node|python3|pip|go|docker|kubectl|hop-gateway|grpcurl|buf) [^`\n]+)`/g;

/** Blocks that are no commands: headers, and parts of answers. */
const NO_COMMANDS = /^(?:Age:|Warning:|"details"|http\/ ->)/;

const blocks: readonly Command[] = PAGES.flatMap((page) =>
  [...readFileSync(join(project, page), "utf8").matchAll(/^( *)```(\w*)\n([\s\S]*?)^ *```$/gm)]
    .filter(([, , language = ""]) => ["", "sh", "bash", "console"].includes(language))
    .map(([, indent = "", , text = ""]) => ({ page, text: text.replaceAll(new RegExp(`^${indent}`, "gm"), "") }))
    .filter(({ text }) => !NO_COMMANDS.test(text)),
);
/** What a sentence tells a user to run. The pages for maintainers name what .ci/run and they themselves run. */
const inSentences: readonly Command[] = PAGES.filter(
  (page) => !/^(?:CONTRIBUTING|SECURITY)|\/internals\//.test(page),
).flatMap((page) =>
  [
    ...readFileSync(join(project, page), "utf8")
      .replaceAll(/^( *)```[\s\S]*?^ *```$/gm, "")
      .matchAll(INLINE_COMMAND),
  ].map(([, text = ""]) => ({ page, text: text.replaceAll(/<[\w ]+>/g, "value") })),
);
/** A block whose lines depend on each other is one command. */
const inBlocks: readonly Command[] = blocks.flatMap(({ page, text }) =>
  /^\w+=\S+$|\\$|^mkdir/m.test(text)
    ? [{ page, text }]
    : text
        .trim()
        .split("\n")
        .map((line) => ({ page, text: line })),
);
const commands = [...inBlocks, ...inSentences];
const curls = commands.filter(({ text }) => /^curl (?:-N )?'http:\/\/127\.0\.0\.1:8000\//.test(text));

const gateway = useGateway(() => ({ INDEX: `sqlite:${join(folder(), "index")}`, INDEX_FROM: "2020-01-01" }));
let command: string;
beforeAll(async () => {
  command = await buildService();
});

const atGateway = (text: string) => text.replaceAll("http://127.0.0.1:8000", gateway.url);
const runShell = (text: string) => run("bash", ["--norc", "-e", "-c", text], { cwd: folder() });

test("the pages have commands, and a shell can parse each", async () => {
  expect(commands.length).toBeGreaterThan(35);
  const parseAll = 'for text; do bash -n -c "$text" || echo "cannot parse $text"; done';
  const parsed = await run("bash", ["--norc", "-c", parseAll, "bash", ...commands.map(({ text }) => text)]);
  expect(parsed).toMatchObject({ stdout: "", stderr: "" });
});

test("each command runs in a test, or stands in the list with a reason", () => {
  const known = [...Object.keys(RUN_BY), ...Object.keys(NOT_RUN)];
  const here = [...curls.map(({ text }) => text), ...RUN_HERE];
  const unknown = commands.filter(
    ({ text }) => !here.includes(text.trim()) && !known.some((beginning) => text.startsWith(beginning)),
  );
  expect(unknown).toEqual([]);
  for (const beginning of known)
    expect(
      commands.some(({ text }) => text.startsWith(beginning)),
      beginning,
    ).toBe(true);
  for (const file of Object.values(RUN_BY)) expect(existsSync(join(project, file)), file).toBe(true);
});

test("scripts, variables and options that the pages name exist", () => {
  const { scripts } = JSON.parse(readFileSync(join(project, "package.json"), "utf8")) as { scripts: object };
  const variables = new Set(ENVIRONMENT_VARIABLES.flatMap(({ name, names = [name] }) => names));
  for (const page of PAGES) {
    const text = readFileSync(join(project, page), "utf8");
    for (const [, script = ""] of text.matchAll(/\bnpm run (?:--silent )?([a-z][\w:-]*[a-z])/g))
      expect(Object.keys(scripts), page).toContain(script);
    for (const [, args = ""] of text.matchAll(/[`/]hop-gateway ((?:check|compare|replay|index|--)[^`<[|]*)`/g))
      expect(findUsageError(args.trim().split(/\s+/)), `${page}: hop-gateway ${args}`).not.toMatch(/unknown/i);
  }
  for (const { page, text } of commands)
    for (const [, name = ""] of text.matchAll(/(?:^|\s)([A-Z][A-Z_]+)=\S* (?=\S*(?:npm|node|[A-Z]+_))/g))
      expect([...variables, ...OTHER_VARIABLES], page).toContain(name);
});

/** Returns what is wrong with arguments; empty if nothing is. */
function findUsageError(args: readonly string[]): string {
  try {
    parseCommandLine(args);
    return "";
  } catch (error) {
    return String(error);
  }
}

describe("curl", () => {
  const [streams, answers] = [true, false].map((isStream) =>
    curls.filter(({ text }) => text.startsWith("curl -N") === isStream).map(({ page, text }) => [page, text] as const),
  );
  test.each(answers ?? [])("%s: %s", async (_, text) => {
    const { stdout } = await runShell(atGateway(text).replace("curl", "curl -sS --fail-with-body"));
    expect(typeof JSON.parse(stdout)).toBe("object");
  });

  test.each(streams ?? [])("%s: %s", async (_, text) => {
    const shell = ["--norc", "-e", "-c", atGateway(text).replace("curl", "exec curl -sS --fail-with-body")];
    const child = spawn("bash", shell, { stdio: ["ignore", "pipe", "inherit"] });
    let received = "";
    // The streams go on until nothing can change any more.
    for await (const chunk of child.stdout) {
      received += chunk;
      if (/^event: (transfer|bookmark)$/m.test(received)) break;
    }
    child.kill();
    expect(received).toMatch(/^retry: \d+\n[\s\S]*^event: (transfer|bookmark)$/m);
  });
});

/** Commands that the tests below run. */
const RUN_HERE = [
  "npm run build && node dist/examples/quote.js",
  "node dist/src/main.js replay --old http://127.0.0.1:8000 --new http://127.0.0.1:8001",
  `awk -F'"' '$2 ~ /^GET \\/v1\\// { print $2 }' access.log > requests.log`,
  "node dist/src/main.js replay --old http://127.0.0.1:8000 --new http://127.0.0.1:8001 --file requests.log",
];

test("the example of the README finds the client's package in the build", async () => {
  const { stdout } = await run(process.execPath, [join(dirname(command), "../examples/quote.js"), gateway.url]);
  expect(stdout).toMatch(/^24\d{6} arrive, \d{6} is the fee\n$/);
});

test("replay, with the requests of a proxy's log", async () => {
  const log = (request: string) =>
    `127.0.0.1 - - [23/Nov/2026:10:00:00 +0000] "${request} HTTP/1.1" 200 12 "-" "curl"\n`;
  const paths = ["GET /v1/available-routes?token=rETH", "POST /v1/quote", "GET /livez", "GET /v1/quote?amount=1"];
  await writeFile(join(folder(), "access.log"), paths.map(log).join(""));
  await symlink(join(dirname(command), ".."), join(folder(), "dist"));
  const [, , awk = "", replay = ""] = RUN_HERE;
  await runShell(awk);
  expect(await readFile(join(folder(), "requests.log"), "utf8")).toBe(
    "GET /v1/available-routes?token=rETH HTTP/1.1\nGET /v1/quote?amount=1 HTTP/1.1\n",
  );
  const { stdout } = await runShell(atGateway(replay.replaceAll(":8001", ":8000")));
  expect(stdout).toMatch(/^2 equal, 0 different, 0 not compared\n/);
});

// Compares 721 requests.
test.runIf(isFullEffort)("replay, without a file", async () => {
  const [, replay = ""] = RUN_HERE;
  const { stdout } = await run(process.execPath, [
    command,
    ...atGateway(replay.replaceAll(":8001", ":8000")).split(" ").slice(2),
  ]);
  expect(stdout).toMatch(/^721 equal, 0 different, 0 not compared\n/m);
});
