import { findRunningDemo } from "./demo-registry.js";
import { parseSendArguments, USAGE, UsageError } from "./send-arguments.js";
import { sendQuotedTransfer } from "./transfer/send-quoted-transfer.js";

async function main(): Promise<void> {
  const parsed = parseSendArguments(process.argv.slice(2));
  if (parsed === undefined) return console.log(USAGE);
  const demo = await findRunningDemo();
  if (demo === undefined) throw new Error('no local network is running: start one with "npm run demo"');

  const transactionHash = await sendQuotedTransfer(demo, parsed);
  console.log(`sent ${transactionHash}\n`);
  console.log(`curl '${demo.gatewayUrl}/v1/transfer-status?transactionHash=${transactionHash}'`);
}

try {
  await main();
} catch (error) {
  const { message } = error as Error;
  console.error(error instanceof UsageError ? `${message}\n\n${USAGE}` : message);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}
