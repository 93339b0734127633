import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { BridgeService } from "../gen/hop/bridge/v1/bridge_pb.js";

const baseUrl = process.argv[2] ?? "http://127.0.0.1:8000";
const bridge = createClient(BridgeService, createConnectTransport({ baseUrl, httpVersion: "1.1" }));

const transfer = { amount: "25000000", token: "USDT", fromChain: "polygon", toChain: "arbitrum", slippage: 0.5 };
const quote = await bridge.getQuote(transfer);
console.log(`${quote.estimatedReceived} arrive, ${quote.bonderFee} is the fee`);
