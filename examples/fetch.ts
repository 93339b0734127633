// Calls the service with fetch alone; the types come from the OpenAPI description and are erased at compile time.
import { setTimeout as sleep } from "node:timers/promises";
import type { components, paths } from "hop-gateway/openapi";

const baseUrl = process.argv[2] ?? "http://127.0.0.1:8000";

/** Paths that answer with one body; the others are streams. */
type BodyPath = {
  [Path in keyof paths]: paths[Path]["get"]["responses"][200]["content"] extends { "application/json": unknown }
    ? Path
    : never;
}[keyof paths];
type Parameters<Path extends BodyPath> = Omit<NonNullable<paths[Path]["get"]["parameters"]["query"]>, "rpcUrl">;
type Body<Path extends BodyPath> = paths[Path]["get"]["responses"][200]["content"]["application/json"];
type ErrorBody = components["schemas"]["Error"];

/** Sends a GET, up to three times if the service asks for a retry. Returns the body of the response. */
async function get<Path extends BodyPath>(
  path: Path,
  parameters: Parameters<Path>,
): Promise<{ ok: true; body: Body<Path> } | { ok: false; body: ErrorBody }> {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) query.set(name, String(value));
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(`${baseUrl}${path}?${query}`, { signal: AbortSignal.timeout(5_000) });
    const retryAfter = response.headers.get("retry-after");
    if (retryAfter !== null && attempt < 3) await sleep(Number(retryAfter) * 1_000);
    else if (response.ok) return { ok: true, body: (await response.json()) as Body<Path> };
    else return { ok: false, body: (await response.json()) as ErrorBody };
  }
}

const routes = await get("/v1/available-routes", { token: "rETH", toChain: "ethereum" });
if (!routes.ok) throw new Error(routes.body.message);
for (const { token, sourceChainSlug } of routes.body) console.log(`${token} can be sent from ${sourceChainSlug}`);

const transfer = { amount: "25000000", token: "USDT", fromChain: "polygon", slippage: 0.5 } as const;
const quote = await get("/v1/quote", { ...transfer, toChain: "arbitrum" });
if (!quote.ok) throw new Error(quote.body.message);
const { amountIn, estimatedReceived, bonderFee } = quote.body;
console.log(`${estimatedReceived} of ${amountIn} arrive, ${bonderFee} is the fee`);

const transferHash = "0x53f632f5c1bfe4e8f46627b8e597af0f161fb14af4cff8ef904cf568fd646073";
const status = await get("/v1/transfer-status", { transferHash });
if (!status.ok) throw new Error(status.body.message);
const { amountFormatted, token, destinationChainSlug, state } = status.body;
console.log(`${amountFormatted} ${token} to ${destinationChainSlug}: ${state}`);

// USDT has no bridge to Base.
const failed = await get("/v1/quote", { ...transfer, toChain: "base" });
if (!failed.ok) console.log(`error: ${failed.body.reason}, ${failed.body.message}`);
