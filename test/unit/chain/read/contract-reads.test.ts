import { utils } from "ethers";
import { describe, expect, test } from "vitest";
import type { ChainClient } from "../../../../src/chain/chain-client.js";
import { readContracts } from "../../../../src/chain/read/contract-reads.js";
import { type NodeCall, never, startPool, UNAVAILABLE_ERROR } from "../support/rpc-node-stub.js";

const multicall = `0x${"ca".repeat(20)}`;
const contractCall = { to: `0x${"a1".repeat(20)}`, data: "0x12345678" };
const abi = new utils.Interface(["function aggregate3() view returns ((bool success, bytes returnData)[])"]);
const word = (value: number): string => `0x${value.toString(16).padStart(64, "0")}`;
/** Time, block and the result of the call. */
const whole = abi.encodeFunctionResult("aggregate3", [[1_700_000_000, 16, 7].map((value) => [true, word(value)])]);

/** A node whose Multicall3 returns this. */
const node = (result: unknown, single = "0x") => ({
  respond: ({ method, params: [call] }: NodeCall) => {
    if (method !== "eth_call") return { result: "0x1" };
    return { result: (call as { to: string }).to === multicall ? result : single };
  },
  head: { number: "0x11", timestamp: "0x20" },
});
const read = (client: ChainClient) =>
  readContracts(client, multicall, { contractCalls: [contractCall], otherCalls: [] }, never);

describe("readContracts", () => {
  test("reads all calls in one block", async () => {
    const { client } = await startPool([node(whole)]);
    expect(await read(client)).toEqual({
      block: { number: 16n, timeSeconds: 1_700_000_000n },
      returnData: [word(7)],
      outcomes: [],
    });
  });

  test.each(["arbitrum", "nova"])("asks %s for the number of its own block", async (slug) => {
    let asked = "";
    const respond = ({ params }: NodeCall) => {
      asked = JSON.stringify(params);
      return { result: whole };
    };
    const { client } = await startPool([{ respond }], { slug });
    await read(client);
    expect(asked).toContain("64".padStart(64, "0"));
  });

  test.each([
    ["without state", "0x"],
    ["with truncated results", whole.slice(0, -64)],
    ["to other calls", abi.encodeFunctionResult("aggregate3", [[[true, word(1)]]])],
    ["of another format", word(1)],
  ])("retries at the next endpoint after a response %s", async (_, invalidResult) => {
    const { client, failures } = await startPool([node(invalidResult), node(whole)]);
    expect(await read(client)).toMatchObject({ returnData: [word(7)] });
    expect(failures).toMatchObject([{ error: "returned an impossible result" }]);
  });

  test("reads one by one where no node has Multicall3", async () => {
    const { client } = await startPool([node("0x", word(9)), node("0x", word(9))]);
    expect(await read(client)).toMatchObject({
      block: { number: 17n, timeSeconds: 32n },
      returnData: [word(9)],
    });
  });

  test("fails where no node gives a complete response", async () => {
    const { client } = await startPool([node(word(1)), node(whole.slice(0, -64))]);
    await expect(read(client)).rejects.toMatchObject(UNAVAILABLE_ERROR);
  });
});
