import { describe, expect, test } from "vitest";
import { UpstreamBudget } from "../../../../src/chain/endpoints/upstream-budget.js";
import { ChainQuorum } from "../../../../src/chain/quorum/chain-quorum.js";
import { createHeader } from "../support/log-chain-stub.js";
import { disconnect, never, type RpcNodeStub, startPool, until } from "../support/rpc-node-stub.js";

const UNAVAILABLE = { reason: "UPSTREAM_UNAVAILABLE" };
const CONTRADICTION = "the RPC endpoints of optimism contradict each other: fewer than 2 agree";

/** What an endpoint says: its head, and the result of a call, which may depend on the block; or an error. */
interface Says {
  readonly head?: number;
  readonly result?: unknown;
  readonly isDead?: boolean;
  readonly hangs?: boolean;
}

function toBehaviour({ head = 100, result = "0xa", isDead = false, hangs = false }: Says): Partial<RpcNodeStub> {
  return {
    head: createHeader(head),
    respond({ method, params: [, block] }) {
      if (method === "eth_getLogs" && result === "0xa") return { result: [] };
      const number = block === "latest" || block === undefined ? head : Number(block);
      if (number > head) return { error: { code: -32000, message: "header not found" } };
      return { result: typeof result === "function" ? result(number) : result };
    },
    intercept: (request) =>
      (isDead && disconnect(request)) ||
      (hangs && request.calls.some(({ method }) => ["eth_call", "eth_gasPrice"].includes(method))),
  };
}

/** Starts a chain on endpoints that say this, of which two have to agree; or a sample of whose reads is compared. */
async function startVoters(says: readonly Says[], quorum = 2) {
  const upstreamBudget = new UpstreamBudget();
  const { pool, nodes, clock } = await startPool(says.map(toBehaviour), { upstreamBudget });
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
    closing: never,
    now: () => clock.ms,
    random: () => 0,
    // No endpoint is slow, and those that contradict others are asked again at once.
    sleep: (ms, signal) =>
      ms === 1_000 || hedges.areDue
        ? Promise.resolve()
        : new Promise((resolve) => signal.addEventListener("abort", () => resolve())),
  });
  return {
    ...{ client, nodes, clock, hedges, outvoted, outcomes },
    /** Takes all requests in flight that an endpoint may have, and returns the function that ends them. */
    fill(index: number): () => void {
      const endpoint = pool.state().endpoints[index]?.endpoint ?? "";
      const requests: { release(): void }[] = [];
      while (upstreamBudget.hasCapacityFor(endpoint)) requests.push(upstreamBudget.openRequest(endpoint));
      return () => {
        for (const request of requests) request.release();
      };
    },
    call: () => client.send("eth_call", [{}, "latest"], never),
    getGasPrice: () => client.send("eth_gasPrice", [], never),
    searchLogs: (newestFirst = false) => {
      const filter = { address: `0x${"b".repeat(40)}`, topics: [] };
      return client.getLogs({ filter, range: { from: 1, to: 100 }, newestFirst }, never);
    },
    countCalls: () => nodes.map(({ requests }) => requests.flat().filter((method) => method === "eth_call").length),
    countHeadReads: () => nodes.map(({ headRequests }) => headRequests),
  };
}

describe.each([
  ["a read at the latest block", "call"],
  ["a read without a block", "getGasPrice"],
  ["a search for logs", "searchLogs"],
] as const)("%s", (_, read) => {
  const OVERLOADED = {
    reason: "OVERLOADED",
    message: "too many requests to RPC endpoints wait for a response: try again later",
    retryAfterSeconds: 1,
  };

  test("is refused as without a quorum while all endpoints have their share of requests", async () => {
    const voters = await startVoters([{}, {}, {}]);
    const releases = [0, 1, 2].map(voters.fill);
    await expect(voters[read]()).rejects.toMatchObject(OVERLOADED);
    expect(voters.nodes.flatMap(({ requests }) => requests)).toEqual([]);
    for (const release of releases) release();
    await expect(voters[read]()).resolves.toBeDefined();
  });

  test("is refused while one answers and the others have their share", async () => {
    const voters = await startVoters([{}, {}, {}]);
    const [release] = [1, 2].map(voters.fill);
    await expect(voters[read]()).rejects.toMatchObject(OVERLOADED);
    release?.();
    await expect(voters[read]()).resolves.toBeDefined();
  });

  test("is the endpoints' failure where too few of them answer anyway", async () => {
    const voters = await startVoters([{ isDead: true }, { isDead: true }, {}]);
    voters.fill(2);
    const message = "only 0 of the 2 RPC endpoints of optimism that have to agree responded (RPC_QUORUM)";
    await expect(voters[read]()).rejects.toMatchObject({ ...UNAVAILABLE, message });
  });
});

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
    await until(() => expect(outvoted).toEqual(["optimism[1] contract"]));
    // It is asked last now.
    expect(await call()).toBe("0xa");
    expect(countCalls().slice(1)).toEqual([2, 2]);
  });

  test.each([
    ["is dead", { isDead: true }],
    ["hangs", { hangs: true }],
  ])("asks another one when one %s", async (_, bad) => {
    const { call } = await startVoters([bad, {}, {}]);
    expect(await call()).toBe("0xa");
  });

  test("counts the answer of a slow one that arrives while another one is asked", async () => {
    const { call, nodes, countCalls } = await startVoters([{}, {}, { hangs: true }]);
    Object.assign(nodes[0] ?? {}, { ready: until(() => expect(countCalls()).toEqual([1, 1, 1])) });
    expect(await call()).toBe("0xa");
  });

  test("ends with its caller", async () => {
    const { client, hedges, countCalls } = await startVoters([{ hangs: true }, { hangs: true }, {}]);
    hedges.areDue = false;
    const leaving = new AbortController();
    const read = client.send("eth_call", [{}, "latest"], leaving.signal);
    const rejected = expect(read).rejects.toMatchObject(UNAVAILABLE);
    await until(() => expect(countCalls()).toEqual([1, 1, 0]));
    leaving.abort();
    await rejected;
  });

  test("asks one that has hung last, for ten seconds", async () => {
    const { call, clock, hedges, countCalls } = await startVoters([{ hangs: true }, {}, {}]);
    await call();
    hedges.areDue = false;
    await call();
    clock.ms += 9_999;
    await call();
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
    await expect(getGasPrice()).rejects.toMatchObject({ ...UNAVAILABLE, message: `${CONTRADICTION} (RPC_QUORUM)` });
  });

  test("says that all differ", async () => {
    const { call, outcomes } = await startVoters([{}, { result: "0xb" }, { result: "0xc" }]);
    await expect(call()).rejects.toMatchObject({ ...UNAVAILABLE, message: `${CONTRADICTION} (RPC_QUORUM)` });
    expect(outcomes).toEqual(["undecided"]);
  });

  test("takes the newest block that two have", async () => {
    const { client } = await startVoters([{ head: 100 }, { head: 101 }, { isDead: true }]);
    expect(await client.send("eth_blockNumber", [], never)).toBe("0x64");
  });

  test.each([
    ["that two have", { head: 1_000_000 }, `${CONTRADICTION} on the latest block (RPC_QUORUM)`],
    [
      "of a second endpoint",
      { isDead: true },
      "only 1 of the 2 RPC endpoints of optimism that have to agree responded (RPC_QUORUM)",
    ],
  ])("says that there is no newest block %s", async (_, other, message) => {
    const { call } = await startVoters([{ head: 100 }, other]);
    await expect(call()).rejects.toMatchObject({ ...UNAVAILABLE, message });
  });
});

test("a sample of the reads is compared between all endpoints, after the answer of the first", async () => {
  const { call, countCalls, outvoted } = await startVoters([{ result: "0xbad" }, {}, {}], 1);
  expect(await call()).toBe("0xbad");
  await until(() => expect(outvoted).toEqual(["optimism[1] contract"]));
  expect(countCalls()).toEqual([3, 1, 1]);
});

describe("the block that all are asked about", () => {
  const result = (block: number) => `0x${block}`;

  test("is the latest of two that are in step, which costs one request each", async () => {
    const { call, clock, countCalls, countHeadReads } = await startVoters([{ result }, { result }, { result }]);
    expect(await call()).toBe("0x100");
    // The first request also has the heads of all read in the background.
    await until(() => expect(countHeadReads()).toEqual([2, 2, 1]));
    clock.ms += 2_000;
    expect(await call()).toBe("0x100");
    expect(countCalls()).toEqual([2, 2, 0]);
    expect(countHeadReads()).toEqual([3, 3, 1]);
  });

  test("is the older of two, of which the other one is asked again, and one that both had then a while later", async () => {
    const { call, clock, countCalls, outcomes } = await startVoters([{ head: 101, result }, { result }, { result }]);
    expect(await call()).toBe("0x100");
    expect([countCalls(), outcomes]).toEqual([[2, 1, 0], ["agreed"]]);
    clock.ms += 2_400;
    expect(await call()).toBe("0x100");
    expect(countCalls()).toEqual([3, 2, 0]);
  });

  test.each([
    ["is not that of an endpoint that is far behind, where a third is not", { result }, "0x100"],
    ["is that of an endpoint that is far behind, where a third is dead", { isDead: true }, "0x90"],
  ])("%s", async (_, third, expected) => {
    const { call } = await startVoters([{ head: 90, result }, { result }, third]);
    expect(await call()).toBe(expected);
  });

  test.each([0, 1])("is an older one where two contradict each other and a third is behind: %i lies", async (liar) => {
    const says: Says[] = [{ result }, { result }, { head: 99, result }];
    says[liar] = { result: "0xbad" };
    const { call, outcomes, outvoted } = await startVoters(says);
    expect(await call()).toBe("0x99");
    expect(outcomes).toEqual(["disputed"]);
    await until(() => expect(outvoted).toEqual([`optimism[${liar + 1}] contract`]));
  });
});

test.each([false, true])(
  "a search for logs where one lies is answered up to the block of the third, unless it begins at its end: %s",
  async (newestFirst) => {
    const hash = `0x${"a".repeat(64)}`;
    const place = { blockNumber: "0x5", blockHash: hash, transactionHash: hash, logIndex: "0x0" };
    const log = { address: `0x${"b".repeat(40)}`, topics: [], data: "0x", ...place };
    const { searchLogs, outvoted } = await startVoters([{ result: [log] }, {}, { head: 99 }]);
    const search = searchLogs(newestFirst);
    if (newestFirst) await expect(search).rejects.toMatchObject(UNAVAILABLE);
    else expect(await search).toEqual({ result: [], range: { from: 1, to: 99 } });
    await until(() => expect(outvoted).toEqual(["optimism[1] logs"]));
  },
);

test("an endpoint whose head cannot be true is named, also where a third is a block behind", async () => {
  const { client, outvoted } = await startVoters([{ head: 1_100 }, { head: 100 }, { head: 99 }]);
  const parseHead = () => ({ number: 100, timestamp: 100 });
  const [outcome] = await client.sendBatch([{ method: "eth_call", params: [{}, "latest"], parseHead }], never);
  expect(outcome).toEqual({ result: "0xa" });
  await until(() => expect(outvoted).toEqual(["optimism[1] head"]));
});
