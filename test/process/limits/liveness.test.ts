import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type AttackedChains, startAttackedChains } from "../../support/attacks/attacked-chains.js";
import { type AttackedService, startAttackedService } from "../../support/attacks/attacked-service.js";
import { POLITE_ADDRESS } from "../../support/attacks/caller-addresses.js";
import { ROUTES_PATH } from "../../support/attacks/memory-attacks.js";
import { startPipelinedFlood } from "../../support/attacks/pipelined-flood.js";
import { sendGet } from "../../support/attacks/send-get.js";
import { pingWithoutReading, readHttp1Slowly, readHttp2Slowly } from "../../support/attacks/slow-readers.js";
import { isFullEffort } from "../../support/effort.js";
import { buildService } from "../../support/service/build-service.js";

let chains: AttackedChains;
let service: AttackedService;

beforeAll(async () => {
  chains = await startAttackedChains();
  service = await startAttackedService(await buildService(), chains.environment);
});
afterAll(async () => {
  await service.stop();
  await chains.close();
});

describe("pipelined requests", () => {
  const REQUESTS = 249;

  test("of many connections take turns with a request of another caller", async () => {
    const { body } = await sendGet(service.port, ROUTES_PATH);
    const connections = isFullEffort ? 400 : 60;
    const flood = startPipelinedFlood({
      port: service.port,
      connections,
      requests: REQUESTS,
      path: ROUTES_PATH,
      callers: 1,
      isReading: true,
    });
    // Sent while the service is already busy with the flood.
    await expect.poll(() => flood.receivedBytes()).toBeGreaterThan(0);
    const before = flood.receivedBytes() / body.length;
    const probe = await sendGet(service.port, "/livez", POLITE_ADDRESS);
    const answeredBefore = flood.receivedBytes() / body.length - before;
    flood.close();
    expect(probe.status).toBe(200);
    expect(answeredBefore).toBeLessThan((connections * REQUESTS) / 4);
  });
});

// These last longer than the deadline of one answer.
describe.runIf(isFullEffort)("an answer that is read too slowly ends within 60 s and some seconds", () => {
  const MAX_SECONDS = 90;

  test.concurrent.each([
    ["HTTP/1.1 at one byte per second", readHttp1Slowly],
    ["HTTP/2 at one byte per second", readHttp2Slowly],
    ["HTTP/2 with a window of 0 and a PING every second", pingWithoutReading],
  ])("%s", async (_name, read) => {
    expect(await read(service.port, MAX_SECONDS)).toBeLessThan(MAX_SECONDS);
  });
});
