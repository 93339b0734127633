import { describe, expect, test } from "vitest";
import { parseCommandLine, UsageError } from "../../../src/commands/command-line.js";
import { formatHelp } from "../../../src/commands/help.js";
import { ENVIRONMENT_VARIABLES } from "../../../src/config/environment-table.js";

const check = { name: "check", network: "mainnet", isJson: false, timeoutMs: 15_000 };

describe("parseCommandLine", () => {
  test.each([
    ["", { name: "serve" }],
    ["serve", { name: "serve" }],
    ["--help", { name: "help", command: undefined }],
    ["-h", { name: "help", command: undefined }],
    ["serve --help", { name: "help", command: "serve" }],
    ["check -h --json", { name: "help", command: "check" }],
    ["--version", { name: "version" }],
    ["-v", { name: "version" }],
    ["check", check],
    [
      "check --network goerli --json --timeout 2.5",
      { name: "check", network: "goerli", isJson: true, timeoutMs: 2_500 },
    ],
    ["check --timeout=600", { ...check, timeoutMs: 600_000 }],
    ["index", { name: "index", from: undefined, copyFrom: undefined }],
    ["index --from 2024-01-01", { name: "index", from: "2024-01-01", copyFrom: undefined }],
    ["index --copy-from sqlite:/data/hop.db", { name: "index", from: undefined, copyFrom: "/data/hop.db" }],
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
    ["check --from 2024-01-01", "Unknown option '--from'"],
    ["check --json=https://host.example/secret", "Option '--json' does not take an argument"],
    ["index --copy-from /data/hop.db", "--copy-from must be sqlite:<file>"],
    ["index --copy-from sqlite:a --from 2024-01-01", "--copy-from and --from exclude each other"],
    ["index --from", "Option '--from <value>' argument missing"],
    ["check --network sepolia", "--network must be one of mainnet, goerli"],
    ["check --timeout 0", "--timeout must be a number of seconds up to 600"],
    ["check --timeout 601", "--timeout must be a number of seconds up to 600"],
    ["check --timeout 1e2", "--timeout must be a number of seconds up to 600"],
  ])("%s: %s", (words, message) => {
    expect(() => parseCommandLine(words.split(" "))).toThrow(new UsageError(message));
  });
});

describe("formatHelp", () => {
  test("lists every command and every variable without Markdown", () => {
    const text = formatHelp(undefined, 80);
    for (const name of ["[serve]", "check", "index", "--help", "--version"]) {
      expect(text).toContain(`  hop-gateway ${name} `);
    }
    for (const { name, description } of ENVIRONMENT_VARIABLES) {
      expect(text).toContain(`\n  ${name} (default: `);
      const words = (from: string) => from.replaceAll("`", "").split(/\s+/).join(" ");
      expect(words(text)).toContain(words(description));
    }
    expect(text).not.toContain("`");
    expect(formatHelp("serve", 80)).toBe(text);
  });

  test.each([40, 60, 80, 120])("wraps at %i columns except within longer words", (columns) => {
    for (const command of [undefined, "check", "index"] as const) {
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
    expect(formatHelp("index", 80)).toMatch(/--from[\s\S]*Exit code/);
  });
});
