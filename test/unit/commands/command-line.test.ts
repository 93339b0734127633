import { describe, expect, test } from "vitest";
import { parseCommandLine, UsageError } from "../../../src/commands/command-line.js";
import { formatHelp } from "../../../src/commands/help.js";
import { ENVIRONMENT_VARIABLES } from "../../../src/config/environment-table.js";

const check = { name: "check", network: "mainnet", isJson: false, timeoutMs: 15_000 };

describe("parseCommandLine", () => {
  test.each([
    ["", { name: "serve" }],
    ["serve", { name: "serve" }],
    ["--help", { name: "help", command: undefined, isAll: false }],
    ["--help --all", { name: "help", command: undefined, isAll: true }],
    ["-h", { name: "help", command: undefined, isAll: false }],
    ["serve --help", { name: "help", command: "serve", isAll: false }],
    ["check -h --json", { name: "help", command: "check", isAll: false }],
    ["--version", { name: "version" }],
    ["-v", { name: "version" }],
    ["check", check],
    [
      "check --network goerli --json --timeout 2.5",
      { name: "check", network: "goerli", isJson: true, timeoutMs: 2_500 },
    ],
    ["check --timeout=600", { ...check, timeoutMs: 600_000 }],
    ["compare", { name: "compare", network: "mainnet", isJson: false }],
    [
      "compare --network goerli --routes ETH:base:optimism,USDC:arbitrum:base --amounts 1,20 --count 3 --json",
      {
        ...{ name: "compare", network: "goerli", isJson: true, count: 3 },
        routes: ["ETH:base:optimism", "USDC:arbitrum:base"],
        amounts: [1n, 20n],
      },
    ],
    [
      "replay --old https://old.example/api/ --new http://127.0.0.1:8000",
      {
        ...{ name: "replay", old: "https://old.example/api", new: "http://127.0.0.1:8000", file: undefined },
        ...{ tolerancePercent: 0.5, isJson: false },
      },
    ],
    [
      "replay --old http://a --new http://b --file requests.log --tolerance 2 --json",
      { name: "replay", old: "http://a", new: "http://b", file: "requests.log", tolerancePercent: 2, isJson: true },
    ],
    ["index", { name: "index", from: undefined }],
    ["index --from 2024-01-01", { name: "index", from: "2024-01-01" }],
  ])("%s", (words, command) => {
    expect(parseCommandLine(words.split(" ").filter((word) => word !== ""))).toEqual(command);
  });

  test.each([
    ["chek", 'unknown command "chek"'],
    ["https://host.example/secret", "unknown command"],
    ["help", 'unknown command "help"'],
    ["serve https://host.example/secret", "serve accepts only options"],
    ["--port 80", "Unknown option '--port'"],
    ["--json", "Unknown option '--json'"],
    ["--all", "--all needs --help"],
    ["check --help --all", "Unknown option '--all'"],
    ["check --from 2024-01-01", "Unknown option '--from'"],
    ["check --json=https://host.example/secret", "Option '--json' does not take an argument"],
    ["index --from", "Option '--from <value>' argument missing"],
    ["check --network sepolia", "--network must be one of mainnet, goerli"],
    ["compare --routes ETH:base", "--routes must be a comma-separated list of token:from:to"],
    ["compare --amounts 1,0", "--amounts must be a comma-separated list of whole numbers in the token's smallest unit"],
    [`compare --amounts ${2n ** 256n}`, "--amounts must be smaller than 2^256"],
    ["compare --count 10001", "--count must be a number from 1 to 10000"],
    [
      "replay --old http://a",
      "--new must be the URL of a server: http or https, without a user, a query or a fragment",
    ],
    ...[
      ...["ftp://a", "a:80", "http://user:secret@a", "http://:secret@a"],
      ...["http://a?key=secret", "http://a#b", "http://a?", "http://a#"],
    ].map((url): [string, string] => [
      `replay --old ${url} --new http://b`,
      "--old must be the URL of a server: http or https, without a user, a query or a fragment",
    ]),
    ...["-1", "101", "1e1", "x"].map((percent): [string, string] => [
      `replay --old http://a --new http://b --tolerance=${percent}`,
      "--tolerance must be a number of percent from 0 to 100",
    ]),
    ["check --timeout 0", "--timeout must be a number of seconds up to 600"],
    ["check --timeout 601", "--timeout must be a number of seconds up to 600"],
    ["check --timeout 1e2", "--timeout must be a number of seconds up to 600"],
  ])("%s: %s", (words, message) => {
    expect(() => parseCommandLine(words.split(" "))).toThrow(new UsageError(message));
  });
});

describe("formatHelp", () => {
  test("lists the common variables alone, and says how many others there are", () => {
    const text = formatHelp(undefined, 80);
    const named = [...text.matchAll(/^ {2}([A-Z_]+(?:<SLUG>)?) \(default: /gm)].map(([, name]) => name);
    expect(named).toHaveLength(12);
    expect(named.slice(0, 3)).toEqual(["HOST", "PORT", "RPC_URL_<SLUG>"]);
    expect(text).toContain(`hop-gateway --help --all lists ${ENVIRONMENT_VARIABLES.length - 12} more.\n`);
    expect(formatHelp(undefined, 80, true)).not.toContain("--help --all lists");
  });

  test("lists each variable once under a group, the common ones first", () => {
    const text = formatHelp(undefined, 80, true);
    for (const { name } of ENVIRONMENT_VARIABLES) expect(text.split(`\n  ${name} (default: `)).toHaveLength(2);
    const titles = [...text.matchAll(/^(\S.*):\n {2}[A-Z_]+/gm)].map(([, title]) => title);
    expect(titles).toEqual([
      ...["Common", "RPC endpoints and chains", "Prices, settings and other hosts", "Quotes", "Index"],
      ...["Callers and limits", "Operation"],
    ]);
  });

  test("lists every command and every variable without Markdown", () => {
    const text = formatHelp(undefined, 80, true);
    for (const name of ["[serve]", "check", "compare", "index", "--help", "--version"]) {
      expect(text).toContain(`  hop-gateway ${name} `);
    }
    const plain = (from: string) => from.replaceAll("`", "").replace(/\[[^\]]+\]\(([\w-]+\.md)\S*\)/g, "docs/$1");
    const words = (from: string) => plain(from).split(/\s+/).join(" ");
    for (const { name, description } of ENVIRONMENT_VARIABLES) {
      expect(text).toContain(`\n  ${name} (default: `);
      expect(words(text)).toContain(words(description));
    }
    expect(text).not.toContain("`");
    expect(text).not.toContain("](");
    expect(words(text)).toContain("replicas and workers; see docs/scaling.md");
    expect(formatHelp("serve", 80, true)).toBe(text);
  });

  test.each([40, 60, 80, 120])("wraps at %i columns except within longer words", (columns) => {
    for (const command of [undefined, "check", "compare", "index"] as const) {
      for (const line of formatHelp(command, columns).split("\n")) {
        if (line.length > columns) expect(line.trim().split(/ {2,}/).at(-1)).not.toContain(" ");
      }
    }
  });

  test("does not wrap below 40 columns", () => {
    expect(formatHelp(undefined, 0)).toBe(formatHelp(undefined, 40));
  });

  test("aligns continuation lines with the text of the second column", () => {
    const lines = formatHelp("check", 50).split("\n");
    const first = lines.findIndex((line) => line.startsWith("  lag "));
    expect(lines[first + 1]).toMatch(/^ {14}\S/);
  });

  test("lists the options of a command", () => {
    expect(formatHelp("check", 80)).toMatch(/--network[\s\S]*--timeout[\s\S]*--json[\s\S]*Exit code/);
    expect(formatHelp("compare", 80)).toMatch(/--routes[\s\S]*--count[\s\S]*Exit code/);
    expect(formatHelp("index", 80)).toMatch(/--from[\s\S]*Exit code/);
  });
});
