import { type BigNumber, Contract, constants, providers } from "ethers";
import { describe, expect, inject, test } from "vitest";
import { getNetwork } from "../../../src/hop/networks.js";
import { closeAfterTest } from "../../support/close-after-test.js";
import { startGatewayForTest, useGateway } from "../../support/service/in-process-gateway.js";
import { startHttpStub } from "../../support/stubs/http-stub.js";

// Details of each seeded transfer: what the recipient got is compared with its balances, and both legs with ethers' reading
// of their blocks.

const { chains, transfers } = inject("network");
const real = transfers.filter(({ expectedState }) => expectedState !== "NOT_FOUND");
type Seeded = (typeof transfers)[number];

/** Substates other than RECEIVED. */
const SUBSTATES: Readonly<Record<string, string>> = {
  "usdt-optimism-arbitrum-withdrawn": "RECEIVED_HTOKEN",
  "dai-polygon-optimism-failed-swap": "RECEIVED_HTOKEN",
  "hop-polygon-gnosis-first-leaf": "WITHDRAWABLE",
  "hop-polygon-gnosis-second-leaf": "WITHDRAWABLE",
  "usdt-optimism-polygon-withdrawable": "WITHDRAWABLE",
  "hop-polygon-arbitrum-withdrawable": "WITHDRAWABLE",
  "eth-arbitrum-ethereum-refused": "WITHDRAWABLE",
  "dai-optimism-arbitrum-rescued": "WAITING_FOR_SETTLEMENT",
  "dai-optimism-arbitrum-committed": "WAITING_FOR_SETTLEMENT",
  "usdt-optimism-ethereum-unbondable": "WAITING_FOR_SETTLEMENT",
  "eth-ethereum-optimism-twin-second": "WAITING_FOR_MESSAGE",
  "usdc-optimism-ethereum": "WAITING_FOR_ATTESTATION",
  "usdc-ethereum-arbitrum-unattested": "WAITING_FOR_ATTESTATION",
  "hop-batch-second": "WAITING_FOR_BONDER",
  "eth-base-polygon": "WAITING_FOR_BONDER",
};

interface Leg {
  readonly blockNumber: number;
  readonly timestamp: number;
  readonly isFinal: boolean;
}

interface Status {
  readonly token: string;
  readonly recipientAddress: string;
  readonly destinationChainSlug: string;
  readonly bondTransactionHash: string;
  readonly state: string;
  readonly details: {
    readonly substate: string;
    readonly receivedAmount: string;
    readonly receivedToken: string;
    readonly source: Leg;
    readonly destination?: Leg;
    readonly estimatedDeliveryAt?: number;
  };
}

const gateway = useGateway();

function providerOf(slug: string): providers.StaticJsonRpcProvider {
  const chain = chains[slug];
  if (chain === undefined) throw new Error(`no chain ${slug}`);
  return new providers.StaticJsonRpcProvider(chain.url, { chainId: chain.chainId, name: slug });
}

const queryOf = ({ transferId, transactionHash }: Seeded): string =>
  `/v1/transfer-status?transferId=${transferId}&transferHash=${transactionHash}`;

async function readFull(seeded: Seeded): Promise<Status> {
  const { status, body } = await gateway.get(`${queryOf(seeded)}&view=FULL`);
  expect(status).toBe(200);
  return body as Status;
}

/** Balance of each account of a local chain at its start. */
const INITIAL_COINS = constants.WeiPerEther.mul(10_000);
/** Tokens by the symbol of the coin that they are, on a chain where that is the native token. */
const COINS: Readonly<Record<string, string>> = { ETH: "ETH", MATIC: "MATIC", XDAI: "DAI" };

/** Returns the address of the token that a transfer paid; the zero address stands for the chain's coin. */
function getPaidToken({ token, destinationChainSlug: slug, details }: Status): string {
  const { contracts, chains: hopChains } = getNetwork("mainnet");
  const { l2HopBridgeToken, l1CanonicalToken, l2CanonicalToken } = contracts.get(token)?.get(slug) ?? {};
  if (details.receivedToken.startsWith("h")) return String(l2HopBridgeToken);
  const isCoin = COINS[hopChains.get(slug)?.nativeToken ?? ""] === token;
  return isCoin ? constants.AddressZero : String(l1CanonicalToken ?? l2CanonicalToken);
}

/** Returns what an account has received of a token since the chain began: it sends nothing and pays for the given transactions. */
async function readReceived(
  slug: string,
  token: string,
  account: string,
  ownTransactions: readonly string[],
): Promise<BigNumber> {
  const provider = providerOf(slug);
  if (token !== constants.AddressZero) {
    return new Contract(token, ["function balanceOf(address) view returns (uint256)"], provider).balanceOf?.(account);
  }
  let balance = (await provider.getBalance(account)).sub(INITIAL_COINS);
  for (const hash of ownTransactions) {
    const { from, gasUsed, effectiveGasPrice } = await provider.getTransactionReceipt(hash);
    if (from.toLowerCase() === account) balance = balance.add(gasUsed.mul(effectiveGasPrice));
  }
  return balance;
}

async function expectLeg(slug: string, leg: Leg | undefined, transactionHash: string): Promise<void> {
  const provider = providerOf(slug);
  const { blockNumber } = await provider.getTransactionReceipt(transactionHash);
  const [{ timestamp }, finalized] = await Promise.all([
    provider.getBlock(blockNumber),
    provider.getBlock("finalized"),
  ]);
  expect(leg).toEqual({ blockNumber, timestamp, isFinal: blockNumber <= finalized.number });
}

test.each(real.map((seeded) => [seeded.name, seeded] as const))("details of %s", async (name, seeded) => {
  const { details, state, token, destinationChainSlug: slug, bondTransactionHash } = await readFull(seeded);
  const { substate, receivedAmount, receivedToken, source, destination } = details;
  expect(substate).toBe(SUBSTATES[name] ?? "RECEIVED");
  expect(details).not.toHaveProperty("estimatedDeliveryAt");
  await expectLeg(seeded.sourceSlug, source, seeded.transactionHash);
  if (state !== "BONDED") {
    expect({ receivedAmount, receivedToken, destination }).toEqual({
      receivedAmount: "",
      receivedToken: "",
      destination: undefined,
    });
    return;
  }
  await expectLeg(slug, destination, bondTransactionHash);
  expect(receivedToken).toBe(substate === "RECEIVED_HTOKEN" ? `h${token}` : token);
  expect(BigInt(receivedAmount)).toBeGreaterThan(0n);
});

test("what the recipient got of each token is what it has", async () => {
  const received = (await Promise.all(real.map(readFull))).filter(({ state }) => state === "BONDED");
  const keyOf = (status: Status): string => `${status.destinationChainSlug} ${getPaidToken(status)}`;
  for (const key of new Set(received.map(keyOf))) {
    const [slug = "", token = ""] = key.split(" ");
    const ofToken = received.filter((status) => keyOf(status) === key);
    const account = ofToken[0]?.recipientAddress ?? "";
    const deliveries = received.filter(({ destinationChainSlug }) => destinationChainSlug === slug);
    const hashes = new Set(deliveries.map(({ bondTransactionHash }) => bondTransactionHash));
    const sum = ofToken.reduce((total, { details }) => total + BigInt(details.receivedAmount), 0n);
    expect([key, (await readReceived(slug, token, account, [...hashes])).toString()]).toEqual([key, sum.toString()]);
  }
});

test("the seeded transfers have every substate", async () => {
  const substates = await Promise.all(real.map(async (seeded) => (await readFull(seeded)).details.substate));
  expect(new Set(substates)).toEqual(new Set([...Object.values(SUBSTATES), "RECEIVED"]));
});

describe("the view", () => {
  const [seeded] = real;
  if (seeded === undefined) throw new Error("no transfers");

  test("BASIC and none answer byte for byte the same, and FULL adds its details at the end", async () => {
    for (const each of real) {
      const read = async (view: string): Promise<string> =>
        (await fetch(`${gateway.url}${queryOf(each)}${view}`)).text();
      const [none, basic, empty, full] = await Promise.all(["", "&view=BASIC", "&view=", "&view=FULL"].map(read));
      expect([basic, empty]).toEqual([none, none]);
      expect(full?.startsWith(`${none?.slice(0, -1)},"details":{"substate":"`)).toBe(true);
    }
  });

  test.each(["full", "ALL", "FULL&view=FULL", "%46ULL%20"])("%s is refused", async (view) => {
    const { status, body } = await gateway.get(`${queryOf(seeded)}&view=${view}`);
    expect({ status, body }).toMatchObject({ status: 400, body: { reason: "INVALID_PARAMETER", field: "view" } });
  });

  test("FULL has a validator while nothing changes", async () => {
    const url = `${gateway.url}${queryOf(seeded)}&view=FULL`;
    const etag = (await fetch(url)).headers.get("etag") ?? "";
    expect(etag).not.toBe("");
    expect((await fetch(url, { headers: { "If-None-Match": etag } })).status).toBe(304);
  });
});

describe("transfers by CCTP", () => {
  const pending = transfers.find(({ name }) => name === "usdc-optimism-ethereum");
  const received = transfers.filter(({ token, expectedState }) => token === "USDC" && expectedState === "BONDED");
  if (pending === undefined) throw new Error("no such transfer");

  test("that wait for an attestation have no warning while the source works", async () => {
    const { headers } = await gateway.get(`${queryOf(pending)}&view=FULL`);
    expect(headers.get("warning")).toBeNull();
  });

  test.each([
    ["is switched off (ATTESTATION_API_URL)", "off", undefined],
    ["does not respond", "gone", undefined],
    ["does not know messages that it has attested", "there", 404],
  ])("have their statuses from the chains alone if the attestation source %s", async (outage, where, status) => {
    const stub = closeAfterTest(await startHttpStub((_, response) => response.writeHead(status ?? 500).end()));
    const urls: Readonly<Record<string, string>> = { off: "off", gone: "http://127.0.0.1:1" };
    const environment = { ATTESTATION_API_URL: urls[where] ?? stub.url };
    const withoutSource = await startGatewayForTest(environment);
    const get = async (path: string) => {
      const response = await withoutSource.get(path);
      expect(response.status).toBe(200);
      return { body: response.body as Status, warning: response.headers.get("warning") };
    };
    const warning = `299 - "it is not known what is attested: the CCTP attestation source ${outage}"`;
    const full = await get(`${queryOf(pending)}&view=FULL`);
    expect(full).toMatchObject({ body: { details: { substate: "WAITING_FOR_ATTESTATION" } }, warning });
    expect(await get(queryOf(pending))).toMatchObject({ body: { state: "PENDING" }, warning: null });
    expect(received.length).toBeGreaterThan(0);
    for (const each of received) {
      const { body, warning: none } = await get(`${queryOf(each)}&view=FULL`);
      expect({ body, none }).toMatchObject({
        body: { state: "BONDED", details: { substate: "RECEIVED" } },
        none: null,
      });
    }
  });
});
