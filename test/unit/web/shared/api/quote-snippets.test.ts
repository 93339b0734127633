import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { buildQuoteSnippets, toGrpcMessage } from "../../../../../web/shared/api/quote-snippets.js";

const query = { amount: "25000000", token: "USDT", fromChain: "polygon", toChain: "arbitrum", slippage: "0.5" };
const guide = readFileSync(new URL("../../../../../docs/integrate.md", import.meta.url), "utf8");

describe("the examples of the page are those of docs/integrate.md:", () => {
  const snippets = buildQuoteSnippets("http://127.0.0.1:8000", query);

  test.each(["TypeScript", "Python", "Go"])("%s", (language) => {
    const lines = guide.split("\n");
    // The guide imports more for its other tasks.
    const isOfGuide = (line: string): boolean =>
      lines.includes(line) || line.startsWith("import { createBridgeClient }");
    expect((snippets[language] ?? "").split("\n").filter((line) => !isOfGuide(line))).toEqual([]);
  });

  test("curl", () => {
    const [, url = ""] = /'http:\/\/127.0.0.1:8000(.*)'$/.exec(snippets.curl ?? "") ?? [];
    expect(guide).toContain(`curl -sS --fail-with-body "$base${url}"`);
  });

  test.each([
    ["buf curl", "buf curl --protocol grpc --http2-prior-knowledge -d", "http://127.0.0.1:8000/"],
    ["grpcurl", "grpcurl -plaintext -d", "127.0.0.1:8000 "],
  ])("%s", (program, command, address) => {
    const transfer = JSON.stringify({ ...query, slippage: 0.5 });
    expect(snippets[program]).toBe(`${command} '${transfer}' ${address}hop.bridge.v1.BridgeService/GetQuote`);
    expect(guide).toContain(`transfer='${transfer}'`);
    expect(guide).toContain(`${command} "$transfer"`);
  });
});

test("an exact output is asked for by receiveAmount, and answers what to send", () => {
  const { amount, ...rest } = query;
  const snippets = buildQuoteSnippets("http://127.0.0.1:8000", { receiveAmount: amount, ...rest });
  for (const snippet of Object.values(snippets)) expect(snippet).toContain("receiveAmount");
  expect(snippets.TypeScript).toContain("amountIn} to send");
  expect(snippets.Python).toContain('["amountIn"], "to send"');
  expect(snippets.Go).toContain('quote.AmountIn, "to send"');
});

test("a service behind TLS is called with TLS", () => {
  const snippets = buildQuoteSnippets("https://hop.example", query);
  expect(snippets["buf curl"]).not.toContain("http2-prior-knowledge");
  expect(snippets.grpcurl).toContain("hop.example:443");
});

test("toGrpcMessage leaves out what is empty, and has a number where the contract has one", () => {
  expect(toGrpcMessage({ amount: "500", slippage: "1", network: "" })).toEqual({ amount: "500", slippage: 1 });
  expect(toGrpcMessage({ slippage: "1e1" })).toEqual({ slippage: "1e1" });
});
