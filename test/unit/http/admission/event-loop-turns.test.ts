import { once } from "node:events";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { BridgeService } from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import type { WorkOwner } from "../../../../src/resilience/caller-ring.js";
import { FairScheduler } from "../../../../src/resilience/fair-scheduler.js";
import {
  createKeepAliveAgent,
  openHttp2,
  post,
  postJson,
  readStream,
  sendHttp1,
  sendHttp2,
} from "../support/raw-client.js";
import { bookmarkEvent, WATCH_GET_PATH, WATCH_PATH, type WatchOperation } from "../support/stream-contract.js";
import { describeOnBothPaths, echoQuote, QUOTE_PATH, startTestServer } from "../support/test-server.js";

/** Refuses requests as if they had waited too long for the turn of their caller. */
class LateScheduler extends FairScheduler {
  isLate = true;

  override begin(owner: WorkOwner, work: () => void, refuse = work): void {
    super.begin(owner, this.isLate ? refuse : work);
  }
}

/** Keeps work of one kind until the test hands it on, and the errors of that work. */
class HeldScheduler extends FairScheduler {
  readonly errors: unknown[] = [];
  readonly #held: (() => void)[] = [];
  readonly #kind: "continue" | "schedule";

  constructor(kind: "continue" | "schedule") {
    super();
    this.#kind = kind;
  }

  get heldCount(): number {
    return this.#held.length;
  }

  override continue(owner: WorkOwner, work: () => void): void {
    if (this.#kind === "continue") this.#hold(owner, work);
    else super.continue(owner, work);
  }

  override schedule(owner: WorkOwner, work: () => void): void {
    if (this.#kind === "schedule") this.#hold(owner, work);
    else super.schedule(owner, work);
  }

  async handOn(): Promise<void> {
    for (const handOn of this.#held.splice(0)) handOn();
    await expect.poll(() => this.waitingCount).toBe(0);
  }

  #hold(owner: WorkOwner, work: () => void): void {
    const watched = (): void => {
      try {
        work();
      } catch (error) {
        this.errors.push(error);
      }
    };
    this.#held.push(() => super.schedule(owner, watched));
  }
}

/** Starts a server that counts the calls of its operation. */
async function setup<T extends FairScheduler>(eventLoop: T) {
  let calls = 0;
  const started = await startTestServer({
    eventLoop,
    getQuote: (request, context) => {
      calls += 1;
      return echoQuote(request, context);
    },
  });
  return { ...started, eventLoop, countCalls: () => calls };
}

describeOnBothPaths(() => {
  test("a request that has waited too long is refused from its headers, and its connection serves the next", async () => {
    const { port, server, eventLoop, countCalls } = await setup(new LateScheduler());
    const agent = createKeepAliveAgent();
    const refused = await sendHttp1(port, "/v1/quote?amount=1", { agent });
    expect(refused.status).toBe(503);
    expect(refused.headers["retry-after"]).toBe("1");
    expect(JSON.parse(refused.body)).toMatchObject({ code: "resource_exhausted", reason: "OVERLOADED" });
    // Not JSON: reading it would be invalid_argument.
    const unread = await sendHttp1(port, QUOTE_PATH, { agent, ...postJson("}".repeat(60_000)) });
    expect(JSON.parse(unread.body)).toMatchObject({ code: "resource_exhausted" });
    expect(countCalls()).toBe(0);
    expect(server.getLoad()).toMatchObject({ waitingForTurn: 0, cuts: { event_loop: 2 } });
    eventLoop.isLate = false;
    const served = await sendHttp1(port, QUOTE_PATH, { agent, ...postJson('{"amount":"1"}') });
    expect([served.status, countCalls()]).toEqual([200, 1]);
  });

  test.each([
    ["gRPC", createGrpcTransport],
    ["gRPC-Web", createGrpcWebTransport],
    ["Connect", createConnectTransport],
  ])("a client of %s receives OVERLOADED with its details", async (_, open) => {
    const { url, countCalls } = await setup(new LateScheduler());
    const client = createClient(BridgeService, open({ baseUrl: url, httpVersion: "2" }));
    const error = ConnectError.from(await client.getQuote({}).catch((reason: unknown) => reason));
    expect(error.code).toBe(Code.ResourceExhausted);
    expect(error.rawMessage).toBe("this address asks for more than there is time for here");
    expect([error.metadata.get("retry-after"), countCalls()]).toEqual(["1", 0]);
    expect(error.details).toMatchObject([{ type: "google.rpc.ErrorInfo" }]);
  });
});

test.each([
  ["before its turn", "schedule", "openStreams"],
  // A body that is whole when its call begins does not wait.
  ["when its body waits for a turn", "continue", "receivedBytes"],
] as const)("a gRPC call whose session ends %s begins nothing, without an error", async (_, kind, load) => {
  const { port, server, logged, eventLoop, countCalls } = await setup(new HeldScheduler(kind));
  const client = openHttp2(port);
  const call = client.request({ ":method": "POST", ":path": QUOTE_PATH, "content-type": "application/grpc" });
  call.on("error", () => {}).write(Buffer.alloc(3));
  await expect.poll(() => server.getLoad()[load]).toBeGreaterThan(0);
  call.end(Buffer.alloc(2));
  await expect.poll(() => eventLoop.heldCount).toBe(1);
  client.destroy();
  await once(client, "close");
  expect(await logged(1)).toMatchObject([{ code: "canceled" }]);
  await eventLoop.handOn();
  expect([eventLoop.errors, countCalls()]).toEqual([[], 0]);
});

test.each([
  ["Connect", createConnectTransport],
  ["gRPC", createGrpcTransport],
  ["gRPC-Web", createGrpcWebTransport],
] as const)(
  "a compressed message of %s is the last work of its turn, since it is read in promises",
  async (_, createTransport) => {
    let ended = 0;
    class ObservedScheduler extends FairScheduler {
      override endTurn(): void {
        ended += 1;
        super.endTurn();
      }
    }
    const { url } = await startTestServer({ eventLoop: new ObservedScheduler() });
    const compression = { sendCompression: compressionGzip, compressMinBytes: 0 };
    const transport = createTransport({ baseUrl: url, httpVersion: "2", ...compression });
    await createClient(BridgeService, transport).getQuote({ token: "USDC" });
    expect(ended).toBe(1);
  },
);

test.each([
  ["Connect", createConnectTransport],
  ["gRPC", createGrpcTransport],
] as const)("a long message of %s is expected to take long before it is read", async (_, createTransport) => {
  const expectedMs: number[] = [];
  class ObservedScheduler extends FairScheduler {
    override continue(owner: WorkOwner, work: () => void): void {
      expectedMs.push(owner.takenMs ?? 0);
      super.continue(owner, work);
    }
  }
  const { url } = await startTestServer({ eventLoop: new ObservedScheduler() });
  const transport = createTransport({ baseUrl: url, httpVersion: "2", useBinaryFormat: true });
  const client = createClient(BridgeService, transport);
  await client.getQuote({ token: "USDC" });
  await client.getQuote({ token: "U".repeat(10_000) });
  expect(expectedMs[0] ?? 1).toBeLessThan(0.1);
  expect(Math.max(...expectedMs)).toBeGreaterThan(1);
});

const grpcPrefix = Buffer.from([0, 0, 0, 0x9c, 0x44, 0x12, 0xc0, 0xb8, 2]);

test.each([
  ["application/json", Buffer.from(JSON.stringify({ token: "x".repeat(40_000) })), ["200", "200", "429"]],
  ["application/grpc", Buffer.concat([grpcPrefix, Buffer.alloc(40_000, "x")]), ["0", "0", "8"]],
])("whole bodies of %s count until their turn, and are refused beyond the limit", async (type, body, statuses) => {
  const eventLoop = new HeldScheduler("continue");
  const { port, server } = await startTestServer({ eventLoop, limits: { receivedBytes: 100_000 } });
  const client = openHttp2(port);
  async function send(): Promise<unknown> {
    const before = server.getLoad().receivedBytes;
    const call = client.request({ ":method": "POST", ":path": QUOTE_PATH, "content-type": type });
    call.write(body.subarray(0, 10));
    await expect.poll(() => server.getLoad().receivedBytes).toBeGreaterThan(before);
    call.end(body.subarray(10));
    const { fields } = await readStream(call);
    return fields["grpc-status"] ?? String(fields[":status"]);
  }
  const answers = [send()];
  await expect.poll(() => eventLoop.heldCount).toBe(1);
  answers.push(send());
  await expect.poll(() => eventLoop.heldCount).toBe(2);
  expect(server.getLoad().receivedBytes).toBeGreaterThan(80_000);
  answers.push(send());
  await expect.poll(() => server.getLoad().cuts.received_bytes).toBe(1);
  await expect
    .poll(async () => {
      await eventLoop.handOn();
      return server.getLoad().requests;
    })
    .toBe(0);
  expect((await Promise.all(answers)).sort()).toEqual(statuses);
  expect([eventLoop.errors, server.getLoad().receivedBytes]).toEqual([[], 0]);
});

test.each([
  ["Server-Sent Events", sendHttp1, WATCH_GET_PATH, {}],
  ["gRPC", sendHttp2, WATCH_PATH, post("application/grpc", Buffer.alloc(5))],
  ["Connect", sendHttp1, WATCH_PATH, post("application/connect+proto", Buffer.alloc(5))],
] as const)(
  "a stream over %s starts among long requests, and is late rather than refused",
  async (_, send, path, request) => {
    const expectedMs: number[] = [];
    class ObservedScheduler extends LateScheduler {
      override begin(owner: WorkOwner, work: () => void, refuse?: () => void): void {
        expectedMs.push(owner.takenMs ?? 0);
        super.begin(owner, work, refuse);
      }
    }
    const watch: WatchOperation = (__, stream) => {
      stream.send(bookmarkEvent("served"));
      stream.end();
      return { onReady() {}, onDrain() {}, onEnd() {} };
    };
    const { port, server } = await startTestServer({ eventLoop: new ObservedScheduler(), watch });
    expect((await send(port, path, request)).body).toContain("served");
    expect(server.getLoad().cuts.event_loop).toBe(0);
    expect(Math.max(...expectedMs)).toBeGreaterThan(1);
  },
);

test("a probe that has waited too long is answered, and not counted as refused", async () => {
  const { server, port } = await startTestServer({
    eventLoop: new LateScheduler(),
    documents: new Map([["/livez", () => ({ status: 200, contentType: "application/json", body: "{}" })]]),
  });
  expect(await sendHttp1(port, "/livez")).toMatchObject({ status: 200 });
  expect(server.getLoad().cuts.event_loop).toBe(0);
});
