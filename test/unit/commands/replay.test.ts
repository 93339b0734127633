import { writeFile } from "node:fs/promises";
import { afterEach, describe, expect, test } from "vitest";
import { replayRequests } from "../../../src/commands/replay.js";
import { type HttpStub, sendJson, startHttpStub } from "../../support/stubs/http-stub.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// The older server answers as its specification has it, in the variants that it leaves open: slippage is a string, the
// amount received has the misspelt name, and a status has no state.

type Handler = Parameters<typeof startHttpStub>[0];

const ROUTES = [
  ["ETH", "optimism", "base"],
  ["USDT", "polygon", "ethereum"],
  ["MOON", "polygon", "gnosis"],
].map(([token, sourceChainSlug, destinationChainSlug]) => ({ token, sourceChainSlug, destinationChainSlug }));

const folder = useTemporaryFolder();
const stubs: HttpStub[] = [];
afterEach(async () => {
  for (const stub of stubs.splice(0)) await stub.close();
});

async function start(listener: Handler): Promise<HttpStub> {
  const stub = await startHttpStub(listener);
  stubs.push(stub);
  return stub;
}

/** Returns a server with a fee in percent of the amount. */
function serve(feePercent: number, added: object = {}): Handler {
  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://host");
    if (pathname.endsWith("/available-routes")) return sendJson(response, ROUTES);
    const amount = Number(searchParams.get("amount"));
    const bonderFee = String(Math.round((amount * feePercent) / 100));
    const quote = { amountIn: `${amount}`, slippage: searchParams.get("slippage"), bonderFee };
    return sendJson(response, { ...quote, estimatedRecieved: String(amount - Number(bonderFee)), ...added });
  };
}

async function replay(old: Handler, current: Handler, options: { lines?: string; isJson?: boolean } = {}) {
  const [oldStub, newStub] = [await start(old), await start(current)];
  const file = options.lines === undefined ? undefined : `${folder()}/requests.log`;
  if (file !== undefined) await writeFile(file, options.lines ?? "");
  const servers = { old: `${oldStub.url}/api`, new: newStub.url };
  let output = "";
  const write = (text: string) => {
    output += text;
  };
  const settings = { file, tolerancePercent: 0.5, isJson: options.isJson ?? false };
  const code = await replayRequests({ ...servers, ...settings }, { write });
  for (const { url } of [oldStub, newStub]) expect(output).not.toContain(new URL(url).host);
  return { code, output, oldRequests: oldStub.requests, newRequests: newStub.requests };
}

describe("without a file", () => {
  test("quotes every route of the old server with three amounts, and finds answers within the tolerance equal", async () => {
    const { code, output, oldRequests, newRequests } = await replay(serve(1), serve(1.004));
    expect(oldRequests.every((request) => request.startsWith("GET /api/v1/"))).toBe(true);
    expect(newRequests.map((request) => request.replace(/^GET /, ""))).toEqual([
      "/v1/available-routes",
      ...["100000000000000000", "1000000000000000000", "10000000000000000000"].map(
        (amount) => `/v1/quote?amount=${amount}&token=ETH&fromChain=optimism&toChain=base&slippage=0.5`,
      ),
      ...["200000000", "2000000000", "20000000000"].map(
        (amount) => `/v1/quote?amount=${amount}&token=USDT&fromChain=polygon&toChain=ethereum&slippage=0.5`,
      ),
    ]);
    expect(output).toMatch(
      /^not compared: MOON from polygon to gnosis: the token is not known\n7 equal, 0 different, 1 not compared\nmedian time: old \d+ ms, new \d+ ms\n$/,
    );
    expect(code).toBe(0);
  });

  test.each(["old", "new"])(
    "says once that the %s server is gone, and asks the other one nothing more",
    async (side) => {
      const gone = await start(() => {});
      await gone.close();
      const other = await start(serve(1));
      const servers = { old: other.url, new: other.url, [side]: gone.url };
      let output = "";
      const options = { ...servers, file: undefined, tolerancePercent: 0.5, isJson: false };
      expect(await replayRequests(options, { write: (text) => (output += text) })).toBe(3);
      expect(output).toBe(
        `not compared: /v1/available-routes: the ${side} server: connection refused\n0 equal, 0 different, 1 not compared\n`,
      );
      expect(other.requests).toEqual(["GET /v1/available-routes"]);
    },
  );
});

describe("with a file", () => {
  const lines = "# yesterday\n/v1/quote?amount=1000&slippage=0.5\n\nGET /v1/quote?amount=2000 HTTP/1.1\r\n";

  test("prints what differs, and exits with 1", async () => {
    const { code, output, newRequests } = await replay(serve(1), serve(2, { slippage: 0.5, state: "BONDED" }), {
      lines,
    });
    expect(newRequests).toEqual(["GET /v1/quote?amount=1000&slippage=0.5", "GET /v1/quote?amount=2000"]);
    expect(output.split("\n").slice(0, 6)).toEqual([
      "different: /v1/quote?amount=1000&slippage=0.5",
      '    slippage: "0.5", new: 0.5',
      '    bonderFee: "10", new: "20", +100 %',
      '    estimatedRecieved: "990", new: "980", -1.01 %',
      "    state: added",
      "different: /v1/quote?amount=2000",
    ]);
    expect(output).toContain("\n0 equal, 2 different, 0 not compared\n");
    expect(code).toBe(1);
  });

  test("does not wait for streams, and says so", async () => {
    const serveStream: Handler = (request, response) => {
      if (!request.url?.includes("transfers:watch")) return serve(1)(request, response);
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("retry: 1000\n\n");
    };
    const watch = "/v1/transfers:watch?transferHash=0x1";
    const { code, output } = await replay(serveStream, serveStream, { lines: `${watch}\n/v1/quote?amount=1\n` });
    const reason = "answers with a stream of events, which is not compared";
    expect(output).toContain(`not compared: ${watch}: the old server: ${reason}; the new server: ${reason}\n`);
    expect(output).toContain("1 equal, 0 different, 1 not compared\n");
    expect(code).toBe(0);
  });

  test("prints no control characters of a server", async () => {
    const { output } = await replay(serve(1), serve(1, { "\u001b[2J": 1, "a\nb": { "\u009b": 2 } }), { lines });
    expect(output).toContain("    ?[2J: added\n    a?b: added\n");
    expect(output).not.toMatch(/[^\n\x20-\x7e]/);
  });

  test("prints JSON, with one difference of many answers", async () => {
    const missing: Handler = (request, response) =>
      request.url?.includes("2000") ? sendJson(response, {}, 404) : serve(1)(request, response);
    const { code, output } = await replay(serve(1), missing, { lines, isJson: true });
    const number = expect.any(Number) as unknown;
    expect(JSON.parse(output)).toEqual({
      tolerancePercent: 0.5,
      equal: 1,
      medianMs: { old: number, new: number },
      failed: [],
      differences: [
        {
          request: "/v1/quote?amount=2000",
          status: { old: 200, new: 404 },
          timeMs: { old: number, new: number },
          fields: [{ field: "status", kind: "status", old: 200, new: 404 }],
        },
      ],
    });
    expect(code).toBe(1);
  });

  test("asks a server again that limits its callers, and gives up in the end", async () => {
    const limit =
      (count: number): Handler =>
      (request, response) => {
        if (--count < 0) return serve(1)(request, response);
        response.setHeader("retry-after", "0");
        return sendJson(response, {}, 429);
      };
    const line = "/v1/quote?amount=1000";
    expect((await replay(limit(4), limit(2), { lines: line })).code).toBe(0);
    const { code, output } = await replay(limit(5), serve(1), { lines: line });
    expect(output).toMatch(
      /^not compared: \S+: the old server: answered 429 5 times\n0 equal, 0 different, 1 not compared/,
    );
    expect(code).toBe(3);
  });

  test.each<[string, Handler, number, string]>([
    ["errors of the servers", (_, response) => sendJson(response, {}, 500), 3, "both servers answered 500"],
    ["pages", (_, response) => void response.end("<html>"), 3, "both servers answered something that is not JSON"],
  ])("does not compare %s", async (_, server, code, reason) => {
    const found = await replay(server, server, { lines: "/v1/quote?amount=1000" });
    expect(found.output).toBe(`not compared: /v1/quote?amount=1000: ${reason}\n0 equal, 0 different, 1 not compared\n`);
    expect(found.code).toBe(code);
  });

  test("exits with 3 where both servers refuse every request, and with 0 where they refuse some", async () => {
    const refuseOne: Handler = (request, response) =>
      request.url?.includes("=1000") ? sendJson(response, {}, 400) : serve(1)(request, response);
    const refused = await replay(refuseOne, refuseOne, { lines: "/v1/quote?amount=1000" });
    expect(refused.output).toContain("1 equal, 0 different, 0 not compared\n");
    expect(refused.code).toBe(3);
    expect((await replay(refuseOne, refuseOne, { lines })).code).toBe(0);
  });

  test.each([true, false])("sends the RPC endpoints of a request, and prints none (JSON: %s)", async (isJson) => {
    const names = ["rpcUrl[optimism]", "rpcUrl%5Bbase%5D", "rpc_url[gnosis]"];
    const path = `/v1/quote?amount=1000&${names.map((name) => `${name}=https://a.example/KEY`).join("&")}&slippage=0.5`;
    const { output, newRequests } = await replay(serve(1), serve(2), { lines: path, isJson });
    expect(newRequests).toEqual([`GET ${path}`]);
    expect(output).toContain(`/v1/quote?amount=1000&${names.map((name) => `${name}=***`).join("&")}&slippage=0.5`);
    expect(output).not.toContain("KEY");
  });

  test.each([
    ["https://host.example/v1/quote", "--file: line 1 is not the path of a GET request"],
    ["/v1/quote\nPOST /v1/quote", "--file: line 2 is not the path of a GET request"],
  ])("refuses %j", async (lines, message) => {
    await expect(replay(serve(1), serve(1), { lines })).rejects.toThrow(message);
  });

  test("says why a file cannot be read", async () => {
    const options = { old: "http://a", new: "http://b", file: `${folder()}/none`, tolerancePercent: 1, isJson: false };
    await expect(replayRequests(options, { write: () => {} })).rejects.toThrow("--file cannot be read: ENOENT");
  });
});
