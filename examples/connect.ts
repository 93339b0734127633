// Over Connect, typed by the contract.
import { faultOf, GetTransferStatusResponse_State as State } from "hop-gateway/client";
import { createBridgeClient } from "hop-gateway/node-client";

const bridge = createBridgeClient(process.argv[2] ?? "http://127.0.0.1:8000", { timeoutMs: 5_000 });

const { routes } = await bridge.listAvailableRoutes({ token: "rETH", toChain: "ethereum" });
for (const { token, sourceChainSlug } of routes) console.log(`${token} can go home from ${sourceChainSlug}`);

const wish = { amount: "25000000", token: "USDT", fromChain: "polygon", slippage: 0.5 };
const quote = await bridge.getQuote({ ...wish, toChain: "arbitrum" });
console.log(`${quote.estimatedReceived} of ${quote.amountIn} arrive, ${quote.bonderFee} is the fee`);

const transferHash = "0xf74083036ad84acb7efc97f2c3877659135d97d02552915b96c1cf77ad48b270";
const { amountFormatted, token, destinationChainSlug, state } = await bridge.getTransferStatus({ transferHash });
console.log(`${amountFormatted} ${token} to ${destinationChainSlug}: ${State[state]}`);

try {
  // USDT has no bridge to Base.
  await bridge.getQuote({ ...wish, toChain: "base" });
} catch (error) {
  const fault = faultOf(error);
  // Nothing came from the service: it is not there, or was not in time.
  if (fault === undefined) throw error;
  console.log(`refused: ${fault.reason}, ${fault.message}`);
}
