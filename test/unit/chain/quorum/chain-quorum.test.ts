import { describe, expect, test, vi } from "vitest";
import { UpstreamBudget } from "../../../../src/chain/endpoints/upstream-budget.js";
import { ChainQuorum } from "../../../../src/chain/quorum/chain-quorum.js";
import { createPoolOn, type RpcNodeStub, startRpcNodeStub } from "../support/rpc-node-stub.js";

const ADDRESS = `0x${"b".repeat(40)}`;
const NEVER = new AbortController().signal;
const HEAD = { number: "0x64", timestamp: "0x64", hash: `0x${"a".repeat(64)}` };

/** Two of three endpoints that tell the same have to agree. */
async function startQuorum() {
  const upstreamBudget = new UpstreamBudget();
  const nodes: RpcNodeStub[] = [];
  for (let index = 0; index < 3; index += 1)
    nodes.push(
      await startRpcNodeStub({
        head: HEAD,
        respond: ({ method }) => ({ result: method === "eth_getLogs" ? [] : "0x1" }),
      }),
    );
  const { pool } = createPoolOn(nodes, { upstreamBudget });
  const { client } = new ChainQuorum(pool, {
    quorum: 2,
    sampleRate: 0,
    observer: { onOutvoted: () => {}, onRead: () => {}, onCalls: () => {} },
    closing: NEVER,
  });
  const names = pool.state().endpoints.map(({ endpoint }) => endpoint);
  return {
    nodes,
    /** Takes all requests in flight that these endpoints may have. */
    fill: (...indexes: number[]) => indexes.map((index) => fill(upstreamBudget, names[index] ?? "")),
    reads: {
      "a read at the latest block": () => client.send("eth_call", [{}, "latest"], NEVER),
      "a read without a block": () => client.send("eth_gasPrice", [], NEVER),
      "a search for logs": () =>
        client.getLogs({ filter: { address: "0x1", topics: [] }, range: { from: 1, to: 9 } }, NEVER),
    },
  };
}

/** Returns a function that ends the requests again. */
function fill(budget: UpstreamBudget, endpoint: string): () => void {
  const requests: { release(): void }[] = [];
  while (budget.hasCapacityFor(endpoint)) requests.push(budget.openRequest(endpoint));
  return () => {
    for (const request of requests) request.release();
  };
}

describe.each(["a read at the latest block", "a read without a block", "a search for logs"] as const)("%s", (kind) => {
  const OVERLOADED = {
    reason: "OVERLOADED",
    message: "too many requests to RPC endpoints wait for a response: try again later",
    retryAfterSeconds: 1,
  };

  test("is refused as without a quorum while all endpoints have their share of requests", async () => {
    const { fill: fillAll, reads, nodes } = await startQuorum();
    const release = fillAll(0, 1, 2);
    await expect(reads[kind]()).rejects.toMatchObject(OVERLOADED);
    expect(nodes.flatMap(({ requests }) => requests)).toEqual([]);
    for (const each of release) each();
    await expect(reads[kind]()).resolves.toBeDefined();
  });

  test("is refused while one answers and the others have their share", async () => {
    const { fill: fillSome, reads } = await startQuorum();
    const [release] = fillSome(1, 2);
    await expect(reads[kind]()).rejects.toMatchObject(OVERLOADED);
    release?.();
    await expect(reads[kind]()).resolves.toBeDefined();
  });

  test("is the endpoints' failure where too few of them answer anyway", async () => {
    const { fill: fillOne, reads, nodes } = await startQuorum();
    for (const node of nodes.slice(0, 2)) node.intercept = ({ response }) => response.destroy() !== undefined;
    fillOne(2);
    await expect(reads[kind]()).rejects.toMatchObject({
      reason: "UPSTREAM_UNAVAILABLE",
      message: "only 0 of the 2 RPC endpoints of optimism that have to agree responded (RPC_QUORUM)",
    });
  });
});

/** What an endpoint says: its head, and the result of a call, which may depend on the block; or an error. */
interface Says {
  readonly head?: number;
  readonly result?: unknown;
  readonly isDead?: boolean;
  readonly hangs?: boolean;
}

/** A chain on endpoints that say this, of which two have to agree; or a sample of whose reads is compared. */
async function startVoters(says: readonly Says[], quorum = 2) {
  const toHead = (number: number) => ({ number: `0x${number.toString(16)}`, timestamp: `0x${number.toString(16)}` });
  const nodes: RpcNodeStub[] = [];
  for (const { head = 100, result = "0xa", isDead = false, hangs = false } of says) {
    const intercept: RpcNodeStub["intercept"] = ({ calls, response }) => {
      if (isDead) response.destroy();
      return isDead || (hangs && calls.some(({ method }) => ["eth_call", "eth_gasPrice"].includes(method)));
    };
    const respond: RpcNodeStub["respond"] = ({ params: [, block] }) => {
      const number = block === "latest" || block === undefined ? head : Number(block);
      if (number > head) return { error: { code: -32000, message: "header not found" } };
      return { result: typeof result === "function" ? result(number) : result };
    };
    nodes.push(await startRpcNodeStub({ head: toHead(head), respond, intercept }));
  }
  const { pool, send, clock } = createPoolOn(nodes);
  const hedges = { areDue: says.some(({ hangs }) => hangs) };
  const outvoted: string[] = [];
  const outcomes: string[] = [];
  const { client } = new ChainQuorum(pool, {
    quorum,
    sampleRate: 1,
    observer: {
      onOutvoted: (endpoint, read) => outvoted.push(`${endpoint.slice(0, "optimism[1]".length)} ${read}`),
      onRead: (outcome) => outcomes.push(outcome),
      onCalls: () => {},
    },
    closing: NEVER,
    now: () => clock.ms,
    random: () => 0,
    // No endpoint is slow, and those that contradict others are asked again at once.
    sleep: (ms, signal) =>
      ms === 1_000 || hedges.areDue
        ? Promise.resolve()
        : new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
  });
  return {
    client,
    clock,
    hedges,
    send,
    outvoted,
    outcomes,
    call: () => client.send("eth_call", [{}, "latest"], NEVER),
    getGasPrice: () => client.send("eth_gasPrice", [], NEVER),
    countCalls: () => nodes.map(({ requests }) => requests.flat().filter((method) => method === "eth_call").length),
    countHeadReads: () => nodes.map(({ headRequests }) => headRequests),
    searchLogs: (newestFirst = false) =>
      client.getLogs({ filter: { address: ADDRESS, topics: [] }, range: { from: 1, to: 100 }, newestFirst }, NEVER),
  };
}

const UNDECIDED = { reason: "UPSTREAM_UNAVAILABLE" };

describe("a quorum of two", () => {
  test("asks no more endpoints than have to agree", async () => {
    const { call, countCalls, outcomes } = await startVoters([{}, {}, {}]);
    expect(await call()).toBe("0xa");
    expect([countCalls(), outcomes]).toEqual([[1, 1, 0], ["agreed"]]);
  });

  test("asks another one when two differ, and names the one that is outvoted", async () => {
    const { call, countCalls, outcomes, outvoted } = await startVoters([{ result: "0xbad" }, {}, {}]);
    expect(await call()).toBe("0xa");
    expect([countCalls(), outcomes]).toEqual([[1, 1, 1], ["disputed"]]);
    await vi.waitFor(() => expect(outvoted).toEqual(["optimism[1] contract"]), { timeout: 60_000 });
    // It is asked last now.
    expect(await call()).toBe("0xa");
    expect(countCalls().slice(1)).toEqual([2, 2]);
  });

  test("asks another one when one is dead, or hangs", async () => {
    for (const bad of [{ isDead: true }, { hangs: true }]) {
      const { call } = await startVoters([bad, {}, {}]);
      expect(await call()).toBe("0xa");
    }
  });

  test("asks one that has hung last, for ten seconds", async () => {
    const { call, clock, hedges, countCalls } = await startVoters([{ hangs: true }, {}, {}]);
    await call();
    hedges.areDue = false;
    expect(await call()).toBe("0xa");
    clock.ms += 9_999;
    expect(await call()).toBe("0xa");
    expect(countCalls()).toEqual([1, 3, 3]);
    clock.ms += 1;
    hedges.areDue = true;
    await call();
    expect(countCalls()[0]).toBe(2);
  });

  test.each([
    ["the higher of two that differ by a tenth at most", ["0x64", "0x6e", "0x1"], "0x6e"],
    ["the median of three where two differ by more", ["0x46", "0x64", "0x65"], "0x64"],
    ["the higher of two that differ by more where a third is dead", ["0x46", "0x64", { isDead: true }], "0x64"],
    ["the higher of two that differ by more where a third hangs", ["0x46", "0x64", { hangs: true }], "0x64"],
  ])("takes as gas price %s", async (_, prices, expected) => {
    const says = prices.map((price) => (typeof price === "string" ? { result: price } : price));
    expect(await (await startVoters(says)).getGasPrice()).toBe(expected);
  });

  test("takes no gas price where two differ by more than a half and a third does not answer", async () => {
    const { getGasPrice } = await startVoters([{ result: "0x64" }, { result: "0x97" }, { isDead: true }]);
    const message = "the RPC endpoints of optimism contradict each other: fewer than 2 agree (RPC_QUORUM)";
    await expect(getGasPrice()).rejects.toMatchObject({ ...UNDECIDED, message });
  });

  test("says that all differ", async () => {
    const { call, outcomes } = await startVoters([{}, { result: "0xb" }, { result: "0xc" }]);
    const message = "the RPC endpoints of optimism contradict each other: fewer than 2 agree (RPC_QUORUM)";
    await expect(call()).rejects.toMatchObject({ ...UNDECIDED, message });
    expect(outcomes).toEqual(["undecided"]);
  });

  test("takes the newest block that two have, and says when there is none", async () => {
    const { client } = await startVoters([{ head: 100 }, { head: 101 }, { isDead: true }]);
    expect(await client.send("eth_blockNumber", [], NEVER)).toBe("0x64");
    const lying = await startVoters([{ head: 100 }, { head: 1_000_000 }]);
    await expect(lying.call()).rejects.toMatchObject({
      ...UNDECIDED,
      message:
        "the RPC endpoints of optimism contradict each other: fewer than 2 agree on the latest block (RPC_QUORUM)",
    });
    const alone = await startVoters([{ head: 100 }, { isDead: true }]);
    await expect(alone.call()).rejects.toMatchObject({
      ...UNDECIDED,
      message: "only 1 of the 2 RPC endpoints of optimism that have to agree responded (RPC_QUORUM)",
    });
  });
});

test("a sample of the reads is compared between all endpoints, after the answer of the first", async () => {
  const { call, countCalls, outvoted } = await startVoters([{ result: "0xbad" }, {}, {}], 1);
  expect(await call()).toBe("0xbad");
  await vi.waitFor(() => expect(outvoted).toEqual(["optimism[1] contract"]), { timeout: 60_000 });
  expect(countCalls()).toEqual([3, 1, 1]);
});

describe("the block that all are asked about", () => {
  const result = (block: number) => `0x${block}`;

  test("is the latest of two that are in step, which costs one request each", async () => {
    const { call, clock, countCalls, countHeadReads } = await startVoters([{ result }, { result }, { result }]);
    expect(await call()).toBe("0x100");
    // The first request also has the heads of all read in the background.
    await vi.waitFor(() => expect(countHeadReads()).toEqual([2, 2, 1]), { timeout: 60_000 });
    clock.ms += 2_000;
    expect(await call()).toBe("0x100");
    expect(countCalls()).toEqual([2, 2, 0]);
    expect(countHeadReads()).toEqual([3, 3, 1]);
  });

  test("is the older of two, of which the other one is asked again", async () => {
    const { call, countCalls, outcomes } = await startVoters([{ head: 101, result }, { result }, { result }]);
    expect(await call()).toBe("0x100");
    expect([countCalls(), outcomes]).toEqual([[2, 1, 0], ["agreed"]]);
  });

  test("is one that both had a short while ago, where they were not in step then", async () => {
    const { call, clock, countCalls } = await startVoters([{ head: 101, result }, { result }, { result }]);
    await call();
    clock.ms += 2_400;
    expect(await call()).toBe("0x100");
    expect(countCalls()).toEqual([3, 2, 0]);
  });

  test("is not that of an endpoint that is far behind, where a third is not", async () => {
    const { call } = await startVoters([{ head: 90, result }, { result }, { result }]);
    expect(await call()).toBe("0x100");
    const { call: callWithoutThird } = await startVoters([{ head: 90, result }, { result }, { isDead: true }]);
    expect(await callWithoutThird()).toBe("0x90");
  });

  test("is an older one where two contradict each other and a third is behind: the liar is named", async () => {
    for (const liar of [0, 1]) {
      const says: Says[] = [{ result }, { result }, { head: 99, result }];
      says[liar] = { result: "0xbad" };
      const { call, outcomes, outvoted } = await startVoters(says);
      expect(await call()).toBe("0x99");
      expect(outcomes).toEqual(["disputed"]);
      await vi.waitFor(() => expect(outvoted).toEqual([`optimism[${liar + 1}] contract`]), { timeout: 60_000 });
    }
  });
});

describe("a search for logs where one lies and the third is a block behind", () => {
  const hash = `0x${"a".repeat(64)}`;
  const place = { blockNumber: "0x5", blockHash: hash, transactionHash: hash, logIndex: "0x0" };
  const log = { address: ADDRESS, topics: [], data: "0x", ...place };

  test.each([false, true])(
    "is answered up to the block that it has, unless it begins at its end: %s",
    async (newestFirst) => {
      const { searchLogs, outvoted } = await startVoters([{ result: [log] }, { result: [] }, { head: 99, result: [] }]);
      const search = searchLogs(newestFirst);
      if (newestFirst) await expect(search).rejects.toMatchObject(UNDECIDED);
      else expect(await search).toEqual({ result: [], range: { from: 1, to: 99 } });
      await vi.waitFor(() => expect(outvoted).toEqual(["optimism[1] logs"]), { timeout: 60_000 });
    },
  );
});

describe("an endpoint whose head cannot be true", () => {
  test("is named, also where a third is a block behind", async () => {
    const { client, outvoted } = await startVoters([{ head: 1_100 }, { head: 100 }, { head: 99 }]);
    const parseHead = () => ({ number: 100, timestamp: 100 });
    const [outcome] = await client.sendBatch([{ method: "eth_call", params: [{}, "latest"], parseHead }], NEVER);
    expect(outcome).toEqual({ result: "0xa" });
    await vi.waitFor(() => expect(outvoted).toEqual(["optimism[1] head"]), { timeout: 20_000 });
  });
});
