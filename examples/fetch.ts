// With nothing but fetch; the types come from the OpenAPI description and leave no trace in the program.
import { setTimeout as sleep } from "node:timers/promises";
import type { components, paths } from "hop-gateway/openapi";

const baseUrl = process.argv[2] ?? "http://127.0.0.1:8000";

type Parameters<Path extends keyof paths> = Omit<NonNullable<paths[Path]["get"]["parameters"]["query"]>, "rpcUrl">;
type Answer<Path extends keyof paths> = paths[Path]["get"]["responses"][200]["content"]["application/json"];
type Refusal = components["schemas"]["Error"];

/** Asks up to three times where the service says when to come back. Gives the answer, or what was wrong. */
async function ask<Path extends keyof paths>(
  path: Path,
  parameters: Parameters<Path>,
): Promise<{ ok: true; body: Answer<Path> } | { ok: false; body: Refusal }> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) query.set(name, String(value));
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(`${baseUrl}${path}?${query}`, { signal: AbortSignal.timeout(5_000) });
    const retryAfter = response.headers.get("retry-after");
    if (retryAfter !== null && attempt < 3) await sleep(Number(retryAfter) * 1_000);
    else if (response.ok) return { ok: true, body: (await response.json()) as Answer<Path> };
    else return { ok: false, body: (await response.json()) as Refusal };
  }
}

const routes = await ask("/v1/available-routes", { token: "rETH", toChain: "ethereum" });
if (!routes.ok) throw new Error(routes.body.message);
for (const { token, sourceChainSlug } of routes.body) console.log(`${token} can go home from ${sourceChainSlug}`);

const wish = { amount: "25000000", token: "USDT", fromChain: "polygon", slippage: 0.5 } as const;
const quote = await ask("/v1/quote", { ...wish, toChain: "arbitrum" });
if (!quote.ok) throw new Error(quote.body.message);
const { amountIn, estimatedReceived, bonderFee } = quote.body;
console.log(`${estimatedReceived} of ${amountIn} arrive, ${bonderFee} is the fee`);

const transferHash = "0xf74083036ad84acb7efc97f2c3877659135d97d02552915b96c1cf77ad48b270";
const transfer = await ask("/v1/transfer-status", { transferHash });
if (!transfer.ok) throw new Error(transfer.body.message);
const { amountFormatted, token, destinationChainSlug, state } = transfer.body;
console.log(`${amountFormatted} ${token} to ${destinationChainSlug}: ${state}`);

// USDT has no bridge to Base.
const refused = await ask("/v1/quote", { ...wish, toChain: "base" });
if (!refused.ok) console.log(`refused: ${refused.body.reason}, ${refused.body.message}`);
