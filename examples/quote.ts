import { createBridgeClient } from "hop-gateway-client";

const bridge = createBridgeClient(process.argv[2] ?? "http://127.0.0.1:8000");

const transfer = { amount: "25000000", token: "USDT", fromChain: "polygon", toChain: "arbitrum", slippage: 0.5 };
const quote = await bridge.getQuote(transfer);
console.log(`${quote.estimatedReceived} arrive, ${quote.bonderFee} is the fee`);
