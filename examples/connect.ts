// Calls the service over Connect, with types from the contract.
import {
  createBridgeClient,
  getErrorDetails,
  listTransfers,
  GetTransferStatusResponse_State as State,
  watchTransfers,
} from "hop-gateway-client";

const bridge = createBridgeClient(process.argv[2] ?? "http://127.0.0.1:8000", { timeoutMs: 5_000 });

const { routes } = await bridge.listAvailableRoutes({ token: "rETH", toChain: "ethereum" });
for (const { token, sourceChainSlug } of routes) console.log(`${token} can be sent from ${sourceChainSlug}`);

const transfer = { amount: "25000000", token: "USDT", fromChain: "polygon", slippage: 0.5 };
const quote = await bridge.getQuote({ ...transfer, toChain: "arbitrum" });
console.log(`${quote.estimatedReceived} of ${quote.amountIn} arrive, ${quote.bonderFee} is the fee`);

const batch = await bridge.batchGetQuotes({
  ...transfer,
  amount: [transfer.amount],
  toChain: ["arbitrum", "base"],
});
for (const { toChain, result } of batch.results)
  console.log(`${toChain}: ${result.case === "quote" ? result.value.estimatedReceived : result.value?.reason}`);

const { details } = await bridge.getQuote({ ...transfer, toChain: "arbitrum", view: "FULL" });
console.log(`${details?.limits?.minAmount} is the least amount, ${details?.limits?.availableLiquidity} the most`);

const transferHash = "0x2a6e5685b82b1262614ea73a4000775147af693d53e5feeeeebf33910d264ca5";
const { amountFormatted, token, destinationChainSlug, state } = await bridge.getTransferStatus({ transferHash });
console.log(`${amountFormatted} ${token} to ${destinationChainSlug}: ${State[state]}`);

// Resumes by itself, and ends when nothing can change any more.
for await (const { event } of watchTransfers(bridge, { transferHash: [transferHash] }))
  if (event.case === "transfer") console.log(`watched: ${State[event.value.state]}`);

/** Prints an error of the service. Without a reason, it was not reached, or not in time. */
function printError(error: unknown): void {
  const reasons = getErrorDetails(error);
  if (reasons === undefined) throw error;
  console.log(`error: ${reasons.reason}, ${reasons.message}`);
}

try {
  // Needs a server with an index. All pages are requested, one after the other.
  const account = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
  const filter = { account, token: "HOP", fromChain: "arbitrum", toChain: "optimism", pageSize: 20 };
  for await (const listed of listTransfers(bridge, filter)) console.log(`listed: ${listed.transferId}`);
} catch (error) {
  printError(error);
}

try {
  // USDT has no bridge to Base.
  await bridge.getQuote({ ...transfer, toChain: "base" });
} catch (error) {
  printError(error);
}
