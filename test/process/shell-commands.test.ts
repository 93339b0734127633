import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { buildCurlCommand, buildGrpcurlCommand, escapeShellArgument } from "../../web/shared/api/shell-commands.js";

/** Returns the arguments that a shell passes to a command. */
function parseWithShell(command: string): string[] {
  const script = `show() { for argument; do printf '%s\\0' "$argument"; done; }\n${command}`;
  return execFileSync("sh", ["-c", script], { encoding: "utf8" }).split("\0").slice(0, -1);
}

describe("escapeShellArgument", () => {
  test.each([
    ["", "''"],
    ["plain-1.5/x:y", "plain-1.5/x:y"],
    ["it's", "'it'\\''s'"],
    ["a b", "'a b'"],
    ["$(id)", "'$(id)'"],
    ["a&b?c", "'a&b?c'"],
  ])("escapes %j as %s", (text, expected) => {
    expect(escapeShellArgument(text)).toBe(expected);
  });

  test("passes any text unchanged through a shell", () => {
    const text = fc.string({ unit: fc.constantFrom(..."'\"\\ $`!&|;<>()*?[]{}#~%\n\tä€a1") });
    const inputs = fc.sample(fc.array(text, { minLength: 1, maxLength: 20 }), 30);
    for (const words of inputs) {
      expect(parseWithShell(`show ${words.map(escapeShellArgument).join(" ")}`)).toEqual(words);
    }
  });
});

describe("shell commands", () => {
  test("curl requests the path from the origin of the page", () => {
    const command = buildCurlCommand("http://127.0.0.1:8000", "/v1/quote?amount=1&token=ETH");
    expect(command).toBe("curl 'http://127.0.0.1:8000/v1/quote?amount=1&token=ETH'");
  });

  test.each([
    ["http://127.0.0.1:8000", 'grpcurl -plaintext -d \'{"token":"ETH"}\' 127.0.0.1:8000 a.B/C'],
    ["http://gateway.example", 'grpcurl -plaintext -d \'{"token":"ETH"}\' gateway.example:80 a.B/C'],
    ["https://gateway.example", 'grpcurl -d \'{"token":"ETH"}\' gateway.example:443 a.B/C'],
    ["http://[::1]:8000", "grpcurl -plaintext -d '{\"token\":\"ETH\"}' '[::1]:8000' a.B/C"],
  ])("grpcurl connects to %s", (origin, expected) => {
    expect(buildGrpcurlCommand(origin, "a.B/C", { token: "ETH" })).toBe(expected);
  });

  test("grpcurl sends no message if it is empty", () => {
    expect(buildGrpcurlCommand("http://h:1", "a.B/C", {})).toBe("grpcurl -plaintext h:1 a.B/C");
  });

  test("grpcurl receives any message as valid JSON", () => {
    const message = { transferHash: 'it\'s "$HOME"\n' };
    const [, , data = ""] = parseWithShell(
      buildGrpcurlCommand("http://h:1", "a.B/C", message).replace(/^grpcurl/, "show"),
    );
    expect(JSON.parse(data)).toEqual(message);
  });
});
