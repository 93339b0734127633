import { connect } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildService } from "../support/service/build-service.js";
import { openWatch } from "../support/service/watch-client.js";
import { type FuzzTarget, listKnownTransfers, startFuzzTarget } from "./fuzz-target.js";
import { runProperty } from "./run-property.js";

// Streams: tokens that were tampered with, and connections that end anywhere in a stream.

const RUNS = Number(process.env.FUZZ_STREAMS ?? 60);

let service: FuzzTarget;
/** Tokens that the service has issued, with the query of their watch. */
const issued: { readonly query: string; readonly token: string }[] = [];

beforeAll(async () => {
  service = await startFuzzTarget(await buildService(), { WATCH_MAX_PER_CALLER: "0" });
  for (const { transferId, transactionHash } of listKnownTransfers().slice(0, 4)) {
    for (const query of [`transferId=${transferId}`, `transferHash=${transactionHash}&view=FULL`]) {
      const watch = await openWatch(service.url, query);
      const event = await watch.next();
      watch.close();
      if (event === undefined) throw new Error("a watch has no event");
      issued.push({ query, token: event.id });
    }
  }
});
afterAll(() => {
  if (service?.isRunning()) service.signal("SIGKILL");
});

/** Ways to change a token. */
const changes: fc.Arbitrary<(token: string) => string> = fc.oneof(
  fc.nat().map((at) => (token: string) => flip(token, at)),
  fc.nat().map((at) => (token: string) => token.slice(0, at % token.length)),
  fc.nat().map((at) => (token: string) => token.slice(at % token.length)),
  fc.string({ minLength: 1, maxLength: 8 }).map((more) => (token: string) => token + more),
  fc.base64String({ minLength: 1, maxLength: 1_000 }).map((other) => () => other),
  fc.string({ minLength: 1, maxLength: 200 }).map((other) => () => other),
);

function flip(token: string, at: number): string {
  const place = at % token.length;
  const other = token[place] === "A" ? "B" : "A";
  return token.slice(0, place) + other + token.slice(place + 1);
}

test("a token that was tampered with is refused, as a parameter and as Last-Event-ID", async () => {
  const url = `${service.url}/v1/transfers:watch`;
  // The same for every token, so that none is repeated.
  const ask = (query = "", headers = {}) => fetch(`${url}?${query}`, { headers });
  const refusal = await (await ask(`${issued[0]?.query}&resumeToken=x`)).text();
  const headerRefusal = await (await ask(issued[0]?.query, { "last-event-id": "x" })).text();
  for (const text of [refusal, headerRefusal])
    expect(JSON.parse(text)).toMatchObject({ reason: "INVALID_PARAMETER", field: "resumeToken" });
  const property = fc.asyncProperty(
    fc.nat(issued.length - 1),
    changes,
    fc.boolean(),
    async (index, change, isHeader) => {
      const { query, token } = issued[index] as (typeof issued)[number];
      // What no header may hold is a matter of HTTP.
      const changed = isHeader ? change(token).replace(/[^\x21-\x7e]/g, "~") : change(token);
      if (changed === token || changed === "") return;
      const headers: Record<string, string> = isHeader ? { "last-event-id": changed } : {};
      const parameter = isHeader ? "" : `&resumeToken=${encodeURIComponent(changed)}`;
      const response = await ask(`${query}${parameter}`, headers);
      expect([response.status, await response.text()]).toEqual([400, isHeader ? headerRefusal : refusal]);
    },
  );
  await runProperty(property, RUNS * 5);
  await service.expectHealthy();
});

test("connections that end anywhere in a stream leave nothing behind", async () => {
  const port = service.port;
  async function cut(query: string, bytes: number, isReset: boolean): Promise<void> {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    socket.write(`GET /v1/transfers:watch?${query} HTTP/1.1\r\nHost: a\r\n\r\n`);
    let received = 0;
    const closed = new Promise((resolve) => socket.once("close", resolve));
    const leave = () => (isReset ? socket.resetAndDestroy() : socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      received += chunk.length;
      if (received >= bytes) leave();
    });
    if (bytes === 0) leave();
    // A stream that is complete, or silent, ends before so many bytes.
    const timer = setTimeout(leave, 2_000);
    await closed;
    clearTimeout(timer);
  }
  const cuts = fc.array(fc.tuple(fc.nat(issued.length - 1), fc.nat(2_500), fc.boolean()), {
    minLength: 20,
    maxLength: 40,
  });
  const property = fc.asyncProperty(cuts, async (all) => {
    await Promise.all(all.map(([index, bytes, isReset]) => cut(issued[index]?.query ?? "", bytes, isReset)));
  });
  await runProperty(property, Math.ceil(RUNS / 10));
  const countWatches = async () =>
    /^hop_gateway_watches (\d+)$/m.exec(await (await fetch(service.metricsUrl)).text())?.[1];
  await expect.poll(countWatches).toBe("0");
  await service.expectHealthy();
  await service.expectCleanExit();
});
