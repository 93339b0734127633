// Calls the service over Connect, with types from the contract.
import { getErrorDetails, GetTransferStatusResponse_State as State } from "hop-gateway/client";
import { createBridgeClient } from "hop-gateway/node-client";

const bridge = createBridgeClient(process.argv[2] ?? "http://127.0.0.1:8000", { timeoutMs: 5_000 });

const { routes } = await bridge.listAvailableRoutes({ token: "rETH", toChain: "ethereum" });
for (const { token, sourceChainSlug } of routes) console.log(`${token} can be sent from ${sourceChainSlug}`);

const transfer = { amount: "25000000", token: "USDT", fromChain: "polygon", slippage: 0.5 };
const quote = await bridge.getQuote({ ...transfer, toChain: "arbitrum" });
console.log(`${quote.estimatedReceived} of ${quote.amountIn} arrive, ${quote.bonderFee} is the fee`);

const transferHash = "0x53f632f5c1bfe4e8f46627b8e597af0f161fb14af4cff8ef904cf568fd646073";
const { amountFormatted, token, destinationChainSlug, state } = await bridge.getTransferStatus({ transferHash });
console.log(`${amountFormatted} ${token} to ${destinationChainSlug}: ${State[state]}`);

try {
  // USDT has no bridge to Base.
  await bridge.getQuote({ ...transfer, toChain: "base" });
} catch (error) {
  const details = getErrorDetails(error);
  // Without a reason, the error does not come from the service: it was not reached, or not in time.
  if (details === undefined) throw error;
  console.log(`error: ${details.reason}, ${details.message}`);
}
