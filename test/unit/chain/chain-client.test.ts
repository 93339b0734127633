import { Agent } from "undici";
import { afterAll, describe, expect, test } from "vitest";
import { createChainClient, type EndpointFailure } from "../../../src/chain/chain-client.js";
import { RevertError } from "../../../src/chain/rpc-error.js";
import { answerJson, type HttpStub, readBody, startHttpStub, startRpcStub } from "../../support/http-stub.js";

const dispatcher = new Agent();
const stubs: HttpStub[] = [];
afterAll(async () => {
  await dispatcher.destroy();
  await Promise.all(stubs.map((stub) => stub.close()));
});

async function client(...endpoints: Promise<HttpStub>[]) {
  const opened = await Promise.all(endpoints);
  stubs.push(...opened);
  const failures: EndpointFailure[] = [];
  const created = createChainClient({
    slug: "optimism",
    chainId: 1,
    urls: opened.map(({ url }) => `${url}/secret-key`),
    dispatcher,
    attemptMs: 200,
    maxBytes: 10_000,
    onFailure: (failure) => failures.push(failure),
  });
  const send = () => created.send("eth_call", [], new AbortController().signal);
  return { created, send, failures, opened };
}

const well = () => startRpcStub(1, () => ({ result: "0x1" }));
const erring = (error: unknown) => startRpcStub(1, () => ({ error }));

describe("a chain client", () => {
  test("asks the first endpoint only while it answers", async () => {
    const { send, failures, opened } = await client(well(), well());
    expect(await send()).toBe("0x1");
    await send();
    // Its chain id is asked for once, before it is believed.
    expect(opened.map(({ seen }) => seen.length)).toEqual([3, 0]);
    expect(failures).toEqual([]);
  });

  test("believes no endpoint of another chain", async () => {
    const { send, failures, opened } = await client(
      startRpcStub(10, () => ({ result: "0x2" })),
      well(),
    );
    expect(await send()).toBe("0x1");
    expect(failures).toMatchObject([{ problem: "serves another chain" }]);
    expect(opened[0]?.seen).toHaveLength(1);
  });

  test("sends the user info of a URL as a header", async () => {
    const stub = await startHttpStub(async (request, response) => {
      const { id, method } = JSON.parse(await readBody(request));
      answerJson(response, { id, result: method === "eth_chainId" ? "0x1" : request.headers.authorization });
    });
    stubs.push(stub);
    const url = stub.url.replace("http://", "http://us%65r:p%40ss%zz@");
    const created = createChainClient({
      slug: "base",
      chainId: 1,
      urls: [url],
      dispatcher,
      attemptMs: 500,
      maxBytes: 1000,
      onFailure: () => {},
    });
    const expected = `Basic ${Buffer.from("user:p@ss%zz").toString("base64")}`;
    expect(await created.send("eth_gasPrice", [], new AbortController().signal)).toBe(expected);
  });

  test("says nothing of an endpoint when it is the caller who left", async () => {
    const stub = await startHttpStub(() => {});
    stubs.push(stub);
    const failures: EndpointFailure[] = [];
    const created = createChainClient({
      slug: "base",
      chainId: 1,
      urls: [stub.url],
      dispatcher,
      attemptMs: 5000,
      maxBytes: 1000,
      onFailure: (failure) => failures.push(failure),
    });
    await expect(created.send("eth_gasPrice", [], AbortSignal.timeout(50))).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
    });
    expect(failures).toEqual([]);
  });

  test("gives null as a result", async () => {
    expect(await (await client(startRpcStub(1, () => ({ result: null })))).send()).toBeNull();
  });

  test.each([
    ["answers 500", () => startHttpStub((_, response) => answerJson(response, {}, 500)), "answered 500"],
    ["answers 429", () => startHttpStub((_, response) => answerJson(response, {}, 429)), "answered 429"],
    ["hangs", () => startHttpStub(() => {}), "did not answer in time"],
    ["answers no JSON-RPC", () => startHttpStub((_, response) => answerJson(response, [])), "answered no JSON-RPC"],
    [
      "answers for another call",
      () => startHttpStub((_, response) => answerJson(response, { id: 0, result: 1 })),
      "answered no JSON-RPC",
    ],
    ["is rate limited", () => erring({ code: -32005, message: "rate limit" }), "answered JSON-RPC error -32005"],
  ])("goes to the next endpoint when one %s", async (_, endpoint, problem) => {
    const { send, failures } = await client(endpoint(), well());
    expect(await send()).toBe("0x1");
    expect(failures).toMatchObject([{ chain: "optimism", method: "eth_call", problem }]);
    expect(JSON.stringify(failures)).not.toContain("secret-key");
  });

  test("says which chain is unavailable when no endpoint answers, and no more", async () => {
    const error = await (await client(erring({ code: 1, message: "secret" })))
      .send()
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "no RPC endpoint of optimism gives an answer",
    });
  });

  test.each([
    { code: 3, message: "execution reverted: x", data: "0x08c379a0" },
    { code: -32000, message: "execution reverted" },
    { code: -32015, message: "VM execution error." },
    { code: -32603, message: "EVM error InvalidFEOpcode" },
    { code: -32000, message: "gas required exceeds allowance (0)" },
  ])("tells a revert from an endpoint's failure: %j", async (error) => {
    const { send, opened } = await client(erring(error), well());
    const thrown = await send().catch((reason: unknown) => reason);
    expect(thrown).toBeInstanceOf(RevertError);
    expect(thrown).toMatchObject({ code: error.code, data: error.data });
    // A revert is an answer: no other endpoint is asked.
    expect(opened[1]?.seen).toHaveLength(0);
  });

  test("a method that runs no contract cannot revert", async () => {
    const reverting = erring({ code: 3, message: "execution reverted" });
    const { created } = await client(reverting, well());
    expect(await created.send("eth_gasPrice", [], new AbortController().signal)).toBe("0x1");
  });
});
