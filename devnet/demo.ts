import { once } from "node:events";
import { createServer } from "node:net";
import { createGateway } from "../src/app/gateway.js";
import { stopOnSignals } from "../src/app/process-lifecycle.js";
import { loadConfig } from "../src/config/config.js";
import { hopChains } from "./chain/local-chains.js";
import { createDemoIndex } from "./demo-index.js";
import { addDemoToPage, OFFERED_TRANSFER } from "./demo-page.js";
import { type RunningDemo, registerDemo } from "./demo-registry.js";
import { type LocalNetwork, startLocalNetwork } from "./network.js";
import { runCleanups } from "./run-cleanups.js";
import type { SeededTransfer } from "./seed/seeded-transfer.js";
import { parseSendArguments } from "./send-arguments.js";
import { sendQuotedTransfer } from "./transfer/send-quoted-transfer.js";

/** The demo's chains go on by themselves, so that transfers become final and watches of them end. */
const DEMO_BLOCK_TIME_MS = 1_000;

/** Anvil's second account, which has sent the seeded transfers. */
const SENDER = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/** Runs the gateway over a local Hop network until Ctrl-C and prints commands to try. */
async function main(): Promise<void> {
  const began = Date.now();
  // Loopback and a free port for the metrics by default, and a quiet log so that the banner below stays visible.
  const { HOST = "127.0.0.1", METRICS_PORT = "0", LOG_LEVEL = "warn", CUSTOM_RPC_URLS = "public" } = process.env;
  const environment = { ...process.env, HOST, METRICS_PORT, LOG_LEVEL };
  // Validated early: a wrong value must not show only after nine chains have started.
  const { host, port } = loadConfig(environment);
  await assertPortIsFree(host, port);
  const log = (line: string): void => console.log(`[${((Date.now() - began) / 1_000).toFixed(1)} s] ${line}`);
  log(`starting ${hopChains.size} local chains`);
  const network = await startLocalNetwork({ log, blockTimeMs: DEMO_BLOCK_TIME_MS });
  const index = await createDemoIndex(environment);
  try {
    // The local network overrides the user's endpoints: nothing may leave this machine.
    const config = loadConfig({ ...environment, ...index.environment, ...network.environment, CUSTOM_RPC_URLS });
    let demo: RunningDemo = { gatewayUrl: "", chains: network.chains };
    let reportCheck = (_summary: string): void => {};
    const checked = new Promise<string>((resolve) => {
      reportCheck = resolve;
    });
    const gateway = await createGateway(config, undefined, {
      onChainsChecked: reportCheck,
      extendDocuments: (documents) => addDemoToPage(documents, () => sendOffered(demo)),
    });
    const { url, metricsUrl = `${url}/metrics` } = await gateway.start().catch(async (error: unknown) => {
      // It still writes into the folder of the index.
      await gateway.stop();
      throw error;
    });
    demo = { ...demo, gatewayUrl: url };
    const unregister = await registerDemo(demo);
    stopOnSignals(async () => {
      await Promise.all([gateway.stop(), unregister()]);
      await runCleanups([index.remove, network.stop]);
    });
    network.bonder.start();
    log(await checked);
    console.log(renderBanner(url, metricsUrl, network.transfers));
  } catch (error) {
    await runCleanups([index.remove, network.stop]);
    throw error;
  }
}

async function sendOffered(demo: RunningDemo): Promise<string> {
  const transfer = parseSendArguments(OFFERED_TRANSFER.split(" "));
  if (transfer === undefined) throw new Error("there is no transfer to send");
  return sendQuotedTransfer(demo, transfer);
}

/** @throws Error that says how to choose another port */
async function assertPortIsFree(host: string, port: number): Promise<void> {
  const server = createServer();
  try {
    await once(server.listen(port, host), "listening");
    await new Promise((resolve) => server.close(resolve));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
    throw new Error(`port ${port} is in use: PORT=0 npm run demo takes a free one`, { cause: error });
  }
}

function renderBanner(url: string, metricsUrl: string, transfers: LocalNetwork["transfers"]): string {
  // A HOP transfer has no swap and no deadline, so its hash and id are the same in every build of the network.
  const bonded = transfers.find(({ name }) => name === "hop-arbitrum-optimism");
  const quote = "amount=25000000&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5";
  const message = `{"amount":"25000000","token":"USDT","fromChain":"polygon","toChain":"arbitrum","slippage":0.5}`;
  return `
  ${bold("hop-gateway")} at ${bold(url)}, over a local Hop network: ${hopChains.size} chains, nothing leaves this machine.

  ${bold("Try")}
    curl '${url}/v1/quote?${quote}'
    curl '${url}/v1/transfer-status?transactionHash=${bonded?.transactionHash}'
    curl '${url}/v1/available-routes?token=ETH&fromChain=base'
    curl '${url}/v1/transfers?account=${SENDER}'
    grpcurl -plaintext -d '${message}' ${new URL(url).host} hop.bridge.v1.BridgeService/GetQuote
    curl '${metricsUrl}'

  ${bold("Transfers")} on these chains, by the hash of the transaction that sent them
${transfers.map(renderTransferRow).join("\n")}

  ${bold("Send one")} with the button of the page or from another terminal, and watch PENDING turn into BONDED after some seconds
    npm run devnet:send -- ${OFFERED_TRANSFER}

  Ctrl-C ends everything.
`;
}

function renderTransferRow({ transactionHash, expectedState, description }: SeededTransfer): string {
  const state = expectedState === "NOT_FOUND" ? "NONE" : expectedState;
  return `    ${transactionHash}  ${state.padEnd(10)}  ${description}`;
}

function bold(text: string): string {
  return process.stdout.isTTY ? `\u001b[1m${text}\u001b[22m` : text;
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
