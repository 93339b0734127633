import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { type ChannelCredentials, Client, credentials } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deliverTransfer } from "../../../devnet/transfer/deliver-transfer.js";
import {
  BridgeService,
  GetTransferStatusResponse_State as State,
  WatchTransfersRequestSchema,
  type WatchTransfersResponse,
  WatchTransfersResponseSchema,
} from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { watchTransfers } from "../../../src/client.js";
import { findTool } from "../../support/find-tool.js";
import { buildService } from "../../support/service/build-service.js";
import { useGateway } from "../../support/service/in-process-gateway.js";
import { fundAndSend, mineBlocks } from "../../support/service/local-transfers.js";
import { useOwnNetwork } from "../../support/service/own-network.js";
import { type ServiceProcess, startServiceProcess } from "../../support/service/service-process.js";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// One transfer, watched by clients of several makers over every protocol, from its sending until it is final; also while
// the server is killed or restarted. The network is of its own, because blocks become final.

const project = fileURLToPath(new URL("../../..", import.meta.url));
const ROUTE = ["gnosis", "arbitrum"] as const;
const folder = useTemporaryFolder();

const { network, chains } = useOwnNetwork();

const finalise = () => Promise.all(ROUTE.map((slug) => mineBlocks(chains, slug, 70)));

const transports: readonly (readonly [string, (baseUrl: string) => Transport])[] = [
  ["Connect over HTTP/1.1", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
  ["Connect over HTTP/2", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true })],
  ["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
  ["gRPC-Web over HTTP/1.1", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
  ["gRPC-Web over HTTP/2", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "2" })],
];

/** A watch that writes down what it gets: states, `unknown`, and `end` when it is complete. */
interface Watcher {
  readonly seen: readonly string[];
  /** Resolves when the watch has ended. */
  readonly ended: Promise<unknown>;
}

function nameEvent({ event }: Pick<WatchTransfersResponse, "event">): string {
  return event.case === "transfer" ? (State[event.value.state] ?? "") : (event.case ?? "");
}

/** Watches with the client of the package, which resumes by itself. */
function watchByPackage(transport: Transport, hash: string): Watcher {
  const seen: string[] = [];
  async function run(): Promise<void> {
    const client = createClient(BridgeService, transport);
    for await (const received of watchTransfers(client, { transferHash: [hash] })) seen.push(nameEvent(received));
    seen.push("end");
  }
  return { seen, ended: run() };
}

function watchByGrpcJs(url: string, hash: string): Watcher {
  const client = new Client(new URL(url).host, credentials.createInsecure() as ChannelCredentials);
  const stream = client.makeServerStreamRequest(
    `/${BridgeService.typeName}/${BridgeService.method.watchTransfers.name}`,
    (transferHash: string) =>
      Buffer.from(
        toBinary(WatchTransfersRequestSchema, create(WatchTransfersRequestSchema, { transferHash: [transferHash] })),
      ),
    (bytes: Buffer) => fromBinary(WatchTransfersResponseSchema, bytes),
    hash,
  );
  const seen: string[] = [];
  stream.on("data", (received: WatchTransfersResponse) => seen.push(nameEvent(received)));
  const ended = new Promise<void>((resolve, reject) => {
    stream.on("end", () => {
      seen.push("end");
      resolve();
    });
    stream.on("error", reject);
  }).finally(() => client.close());
  return { seen, ended };
}

/** Runs a program that prints one line for each event. */
function watchByProgram(command: string, args: readonly string[], toName: (line: string) => string | undefined) {
  // Debian's Python comes first, because only it has Debian's gRPC.
  const env = { ...process.env, PATH: `/usr/bin:/bin:${process.env.PATH}`, PYTHONDONTWRITEBYTECODE: "1" };
  const child = spawn(command, args, { cwd: folder(), env, stdio: ["ignore", "pipe", "inherit"] });
  const seen: string[] = [];
  createInterface(child.stdout).on("line", (line) => {
    const name = toName(line);
    if (name !== undefined) seen.push(name);
  });
  const ended = new Promise<number | null>((resolve) => child.on("close", (code) => resolve(code)));
  return { seen, ended, stop: () => child.kill("SIGKILL") };
}

/** Watches with curl. `ids` are the event ids so far. */
function watchByCurl(url: string, hash: string, options: readonly string[]) {
  const ids: string[] = [];
  let event = "";
  const toName = (line: string): string | undefined => {
    const [field, value = ""] = line.split(/: (.*)/, 2);
    if (field === "id") ids.push(value);
    if (field === "event") event = value;
    if (field !== "data") return undefined;
    return event === "transfer" ? (JSON.parse(value) as { readonly state: string }).state : event;
  };
  const args = [
    "--silent",
    "--no-buffer",
    "--max-time",
    "100",
    ...options,
    `${url}/v1/transfers:watch?transferHash=${hash}`,
  ];
  return { ...watchByProgram("curl", args, toName), ids };
}

const curlVersions = [
  ["curl over HTTP/1.1", []],
  ["curl over HTTP/2", ["--http2-prior-knowledge"]],
] as const;

const PYTHON_WATCH = `
import sys
import grpc
from hop.bridge.v1 import bridge_pb2 as hop
from hop.bridge.v1.bridge_pb2_grpc import BridgeServiceStub

with grpc.insecure_channel(sys.argv[1]) as channel:
    stub = BridgeServiceStub(channel)
    for event in stub.WatchTransfers(hop.WatchTransfersRequest(transfer_hash=[sys.argv[2]]), timeout=100):
        kind = event.WhichOneof("event")
        is_transfer = kind == "transfer"
        print(hop.GetTransferStatusResponse.State.Name(event.transfer.state) if is_transfer else kind, flush=True)
print("end")
`;

const canPython =
  findTool("protobuf-compiler", "/usr/bin/protoc") &&
  findTool("protobuf-compiler-grpc", "/usr/bin/grpc_python_plugin") &&
  findTool("python3-grpcio", "/usr/lib/python3/dist-packages/grpc");

async function runShell(command: string): Promise<void> {
  const { ended } = watchByProgram("bash", ["--norc", "-e", "-c", command], () => undefined);
  expect(await ended).toBe(0);
}

const statesOf = ({ seen }: Pick<Watcher, "seen">) => seen.filter((name) => name !== "bookmark");

describe("every client sees a transfer from its sending to its end", () => {
  const gateway = useGateway(() => network.environment);
  beforeAll(async () => {
    if (!canPython) return;
    const protoc =
      "protoc -I proto --python_out=stubs --plugin=protoc-gen-grpc=/usr/bin/grpc_python_plugin --grpc_out=stubs";
    const files = `$(cd "${project}" && find proto/hop proto/google proto/buf -name '*.proto')`;
    await runShell(`mkdir -p stubs && ln -s "${project}proto" proto && ${protoc} ${files}`);
  });

  test("also those of other makers", async () => {
    const { transactionHash: hash, transfer } = await fundAndSend(chains, ...ROUTE);
    const python = `PYTHONPATH=stubs exec python3 -c '${PYTHON_WATCH}' ${new URL(gateway.url).host} ${hash}`;
    const watchers: Readonly<Record<string, Watcher>> = {
      ...Object.fromEntries(transports.map(([name, open]) => [name, watchByPackage(open(gateway.url), hash)])),
      ...Object.fromEntries(curlVersions.map(([name, options]) => [name, watchByCurl(gateway.url, hash, options)])),
      "grpc-js": watchByGrpcJs(gateway.url, hash),
      ...(canPython && { grpcio: watchByProgram("bash", ["--norc", "-c", python], (line) => line) }),
    };
    const seen = () => Object.fromEntries(Object.entries(watchers).map(([name, watcher]) => [name, statesOf(watcher)]));
    const each = (states: readonly string[]) => Object.fromEntries(Object.keys(watchers).map((name) => [name, states]));
    await expect.poll(seen).toEqual(each(["PENDING"]));
    await deliverTransfer(chains, transfer);
    await expect.poll(seen).toEqual(each(["PENDING", "BONDED"]));
    await finalise();
    await Promise.all(Object.values(watchers).map(({ ended }) => ended));
    expect(seen()).toEqual(each(["PENDING", "BONDED", "end"]));
  });

  test.each(curlVersions)("%s goes on where it left off", async (_, options) => {
    const { transactionHash: hash, transfer } = await fundAndSend(chains, ...ROUTE);
    const first = watchByCurl(gateway.url, hash, options);
    await expect.poll(() => statesOf(first)).toEqual(["PENDING"]);
    first.stop();
    await first.ended;
    await deliverTransfer(chains, transfer);
    const second = watchByCurl(gateway.url, hash, [...options, "--header", `Last-Event-ID: ${first.ids.at(-1)}`]);
    await expect.poll(() => statesOf(second)).toEqual(["BONDED"]);
    await finalise();
    await second.ended;
    expect(statesOf(second)).toEqual(["BONDED", "end"]);
    const last = ["--header", `Last-Event-ID: ${second.ids.at(-1)}`, "--write-out", "event: %{http_code}\ndata: -\n"];
    const third = watchByCurl(gateway.url, hash, [...options, ...last]);
    await third.ended;
    expect([third.seen, third.ids]).toEqual([["204"], []]);
  });
});

describe.each(["SIGKILL", "SIGTERM"] as const)("a watch goes on over %s and a new start", (signal) => {
  let command: string;
  let service: ServiceProcess;
  beforeAll(async () => {
    command = await buildService();
    service = await startServiceProcess(command, network.environment);
  });
  afterAll(() => service.signal("SIGKILL"));

  test("over every protocol, without a state twice", async () => {
    const { transactionHash: hash, transfer } = await fundAndSend(chains, ...ROUTE);
    const watchers = transports.map(([, open]) => watchByPackage(open(service.url), hash));
    const seen = () => watchers.map(statesOf);
    const each = (states: readonly string[]) => watchers.map(() => states);
    await expect.poll(seen).toEqual(each(["PENDING"]));

    service.signal(signal);
    await service.exitCode;
    await deliverTransfer(chains, transfer);
    service = await startServiceProcess(command, { ...network.environment, PORT: String(service.port) });
    await expect.poll(seen).toEqual(each(["PENDING", "BONDED"]));
    await finalise();
    await Promise.all(watchers.map(({ ended }) => ended));
    expect(seen()).toEqual(each(["PENDING", "BONDED", "end"]));
  });
});
