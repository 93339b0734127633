import { utils } from "ethers";
import { connectChains, getBonder, getLocalChain } from "../chain/local-chains.js";
import { fundAccount } from "../chain/tokens.js";
import type { RunningDemo } from "../demo-registry.js";
import type { SendArguments } from "../send-arguments.js";
import { sendTransfer } from "./send-transfer.js";

/** The fields of a quote that are used here. */
interface QuoteResponse {
  readonly amountOutMin: string;
  readonly destinationAmountOutMin: string;
  readonly bonderFee: string;
  readonly deadline: number;
  readonly destinationDeadline: number;
}

/**
 * Asks the gateway of a demo for a quote and sends what it quotes, as a wallet would.
 * @returns hash of the transaction
 */
export async function sendQuotedTransfer(
  demo: RunningDemo,
  { token, from, to, amount, slippage, recipient }: SendArguments,
): Promise<string> {
  const query = { amount: `${amount}`, token: token.symbol, fromChain: from, toChain: to, slippage };
  const quote = (await getJson(`${demo.gatewayUrl}/v1/quote?${new URLSearchParams(query)}`)) as QuoteResponse;
  const bonderFee = BigInt(quote.bonderFee);
  if (bonderFee >= amount) {
    throw new Error(`send more: the fee alone is ${utils.formatUnits(bonderFee, token.decimals)} ${token.symbol}`);
  }

  const chains = connectChains(demo.chains);
  const [sender = ""] = (await getLocalChain(chains, from).rpc("eth_accounts")) as string[];
  await fundAccount(chains, from, token.symbol, sender, amount);
  const { transactionHash } = await sendTransfer(chains, {
    token: token.symbol,
    source: from,
    destination: to,
    from: sender,
    recipient: recipient ?? sender,
    amount,
    bonderFee,
    amountOutMin: BigInt(quote.amountOutMin),
    deadline: quote.deadline,
    destinationAmountOutMin: BigInt(quote.destinationAmountOutMin),
    destinationDeadline: quote.destinationDeadline,
    ...(from === "ethereum" && bonderFee > 0n ? { relayer: getBonder(token.symbol, from, to) } : {}),
  });
  return transactionHash;
}

async function getJson(url: string): Promise<unknown> {
  const response = await fetch(url, { signal: AbortSignal.timeout(30_000) }).catch((cause: unknown) => {
    throw new Error('the local network is gone: start it with "npm run demo"', { cause });
  });
  const body = (await response.json()) as { error?: string };
  if (!response.ok) throw new Error(body.error ?? `the gateway answered ${response.status}`);
  return body;
}
