import { beforeAll, describe, expect, inject, test } from "vitest";
import { closeAfterTest } from "../support/close-after-test.js";
import { startGatewayForTest, type TestGateway, withGateway } from "../support/service/in-process-gateway.js";
import { toRpcEnvironment } from "../support/stubs/rpc-proxy.js";
import { startFaultProxy } from "./fault-proxy.js";
import { type FaultName, faults } from "./faults.js";

// A chain that fails while details are read: the answer is right or 503, never another substate or amount, and right again
// when the chain is.

const TIMEOUT_MS = 2_000;
const NAMES = ["usdt-optimism-polygon-withdrawable", "dai-polygon-optimism-failed-swap"] as const;
const FAULTS: readonly FaultName[] = [
  "hang",
  "connection refused",
  "slow drip",
  "429, Retry-After 1 s",
  "500",
  "null for everything",
  "results of other types",
  "empty 0x from contracts",
  "null for every block",
  "another chain",
  "batch reordered",
  "batch with a member missing",
  "batch refused",
];

interface Leg {
  readonly isFinal: boolean;
}

interface Answer {
  readonly status: number;
  readonly body: {
    readonly reason?: string;
    readonly message?: string;
    readonly details?: { readonly source: Leg; readonly destination?: Leg };
  };
}

const { chains, transfers } = inject("network");
const paths = NAMES.map((name) => {
  const transfer = transfers.find((each) => each.name === name);
  return `/v1/transfer-status?transferHash=${transfer?.transactionHash}`;
});
let baseline: readonly unknown[];

const readFull = (gateway: TestGateway): Promise<readonly Answer[]> =>
  Promise.all(paths.map((path) => gateway.get(`${path}&view=FULL`) as Promise<Answer>));

/** Leaves out finality, which is false while it is not known. */
function withoutFinality({ body: { details } }: Answer): unknown {
  return JSON.stringify(details, (name, value) => (name === "isFinal" ? undefined : value));
}

beforeAll(async () => {
  const answers = await withGateway({}, readFull);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  baseline = answers.map(withoutFinality);
});

describe.each(["optimism", "polygon"])("while %s fails", (slug) => {
  test.each(FAULTS)("with %s, details are right or unavailable, and right again afterwards", async (fault) => {
    const otherChainUrl = chains.gnosis?.url ?? "";
    const proxy = closeAfterTest(await startFaultProxy(chains[slug]?.url ?? "", { otherChainUrl }));
    const gateway = await startGatewayForTest({
      ...toRpcEnvironment([[slug, proxy]]),
      REQUEST_TIMEOUT_MS: String(TIMEOUT_MS),
      EXPLORER_API_URL: "off",
    });
    // The status is cached: only the details have to be read.
    await Promise.all(paths.map((path) => gateway.get(path)));
    await proxy.setFault(faults[fault]);
    for (const [index, answer] of (await readFull(gateway)).entries()) {
      if (answer.status === 200) expect(withoutFinality(answer)).toBe(baseline[index]);
      else {
        expect([503, 504]).toContain(answer.status);
        expect(answer.body.message).toMatch(answer.status === 504 ? /./ : /optimism|polygon|overloaded/);
      }
    }
    await proxy.setFault(undefined);
    await expect.poll(async () => (await readFull(gateway)).map(withoutFinality)).toEqual(baseline);
  });
});
