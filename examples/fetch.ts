// Calls the service with fetch alone; the types come from the OpenAPI description and are erased at compile time.
import { setTimeout as sleep } from "node:timers/promises";
import type { components, paths } from "hop-gateway-client/openapi";

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
  for (const [name, value] of Object.entries(parameters))
    for (const item of Array.isArray(value) ? value : [value]) query.append(name, String(item));
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(`${baseUrl}${path}?${query}`, { signal: AbortSignal.timeout(5_000) });
    const retryAfter = response.headers.get("retry-after");
    if (retryAfter !== null && attempt < 3) await sleep(Number(retryAfter) * 1_000);
    else if (response.ok) return { ok: true, body: (await response.json()) as Body<Path> };
    else return { ok: false, body: (await response.json()) as ErrorBody };
  }
}

/** Returns the states of a transfer as they change, until nothing can change any more. In a browser, use EventSource. */
async function* watch(transferHash: string): AsyncGenerator<components["schemas"]["GetTransferStatusResponse"]> {
  let id = "";
  let event = "";
  while (event !== "end") {
    try {
      const headers: Record<string, string> = id === "" ? {} : { "Last-Event-ID": id };
      const response = await fetch(`${baseUrl}/v1/transfers:watch?transferHash=${transferHash}`, { headers });
      const retryAfter = response.headers.get("retry-after");
      if (response.status === 204) return;
      if (response.status === 400) throw new RangeError(await response.text());
      if (!response.ok) await sleep(Number(retryAfter) * 1_000);
      let text = "";
      for await (const chunk of response.ok ? (response.body?.pipeThrough(new TextDecoderStream()) ?? []) : []) {
        const lines = (text + chunk).split("\n");
        text = lines.pop() ?? "";
        for (const line of lines) {
          const [name, value = ""] = line.split(/: (.*)/, 2);
          if (name === "event") event = value;
          else if (name === "id") id = value;
          else if (name === "data" && event === "transfer") yield JSON.parse(value);
        }
      }
    } catch (error) {
      // The service rejects the request. Whatever else ends the stream, it goes on after the last event that arrived.
      if (error instanceof RangeError) throw error;
    }
    if (event !== "end") await sleep(500 + 500 * Math.random());
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

const batch = await get("/v1/quotes", { ...transfer, amount: [transfer.amount], toChain: ["arbitrum", "base"] });
if (!batch.ok) throw new Error(batch.body.message);
for (const result of batch.body.results)
  console.log(`${result.toChain}: ${result.quote?.estimatedReceived ?? result.error?.reason}`);

const full = await get("/v1/quote", { ...transfer, toChain: "arbitrum", view: "FULL" });
if (!full.ok) throw new Error(full.body.message);
const limits = full.body.details?.limits;
console.log(`${limits?.minAmount} is the least amount, ${limits?.availableLiquidity} the most`);

const transferHash = "0x2a6e5685b82b1262614ea73a4000775147af693d53e5feeeeebf33910d264ca5";
const status = await get("/v1/transfer-status", { transferHash });
if (!status.ok) throw new Error(status.body.message);
const { amountFormatted, token, destinationChainSlug, state } = status.body;
console.log(`${amountFormatted} ${token} to ${destinationChainSlug}: ${state}`);

for await (const watched of watch(transferHash)) console.log(`watched: ${watched.state}`);

// Needs a server with an index.
const account = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const filter = { account, token: "HOP", fromChain: "arbitrum", toChain: "optimism", pageSize: 20 } as const;
let pageToken = "";
do {
  const page = await get("/v1/transfers", { ...filter, pageToken });
  if (page.ok) for (const { transferId } of page.body.transfers) console.log(`listed: ${transferId}`);
  else console.log(`error: ${page.body.reason}, ${page.body.message}`);
  pageToken = page.ok ? page.body.nextPageToken : "";
} while (pageToken !== "");

// USDT has no bridge to Base.
const failed = await get("/v1/quote", { ...transfer, toChain: "base" });
if (!failed.ok) console.log(`error: ${failed.body.reason}, ${failed.body.message}`);
