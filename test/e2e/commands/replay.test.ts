import { writeFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { buildService } from "../../support/service/build-service.js";
import { useGateway } from "../../support/service/in-process-gateway.js";
import { runCommand } from "../../support/service/run-command.js";
import { type HttpStub, startHttpStub } from "../../support/stubs/http-stub.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Runs `hop-gateway replay` against a gateway over the local network, and a stub that answers as the older server may.

const { transfers } = inject("network");
const folder = useTemporaryFolder();

let command: string;
const gateway = useGateway();
let older: HttpStub;
beforeAll(async () => {
  command = await buildService();
  older = await startHttpStub(async (request, response) => {
    const answer = await fetch(`${gateway.url}${request.url}`);
    response.writeHead(answer.status, { "content-type": "application/json" });
    response.end(JSON.stringify(toOlderForm(await answer.json())));
  });
});
afterAll(() => older.close());

/** Returns an answer in the variants that the specification of the older server allows: addresses with a checksum, ... */
function toOlderForm(body: unknown): unknown {
  if (Array.isArray(body)) return body.toReversed();
  const { estimatedReceived, state, otherTransferIds, slippage, ...fields } = body as Record<string, unknown>;
  const { accountAddress } = fields;
  return {
    ...fields,
    ...(slippage !== undefined && { slippage: String(slippage) }),
    ...(typeof accountAddress === "string" && {
      accountAddress: accountAddress.replace(/[a-f]/g, (digit) => digit.toUpperCase()),
    }),
  };
}

const replay = (args: readonly string[]) => runCommand(command, ["replay", ...args]);

test("finds what the older server lacks, and nothing else", async () => {
  const file = `${folder()}/requests.log`;
  const { transferId } = transfers.find(({ expectedState }) => expectedState === "BONDED") ?? {};
  const quote = "/v1/quote?amount=25000000&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5";
  const status = `/v1/transfer-status?transferId=${transferId}`;
  await writeFile(file, [quote, status, "/v1/available-routes", "/v1/quote?amount=1"].join("\n"));
  const { code, stdout } = await replay(["--old", older.url, "--new", gateway.url, "--file", file]);
  expect(stdout.split("\n").filter((line) => !line.startsWith("median"))).toEqual([
    `different: ${quote}`,
    '    slippage: "0.5", new: 0.5',
    "    estimatedReceived: added",
    `different: ${status}`,
    "    state: added",
    "    otherTransferIds: added",
    "2 equal, 2 different, 0 not compared",
    "",
  ]);
  expect(code).toBe(1);
});

test("exits with 0 for the same server, 2 for a wrong option, 3 if nothing could be compared", async () => {
  const file = `${folder()}/one.log`;
  await writeFile(file, "/v1/available-routes");
  const run = (old: string, ...more: string[]) => replay(["--old", old, "--new", gateway.url, "--file", file, ...more]);
  const codes = [run(gateway.url), run(gateway.url, "--tolerance=x"), run("http://127.0.0.1:1")];
  expect((await Promise.all(codes)).map(({ code }) => code)).toEqual([0, 2, 3]);
});
