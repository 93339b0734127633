import { get } from "node:http";

/** Path of a quote, to which the amount is added. */
export const QUOTE_PATH = "/v1/quote?token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5&amount=";

export interface GetResult {
  /** HTTP status; 0: there was no response. */
  readonly status: number;
  readonly body: string;
  /** Milliseconds to the last byte. */
  readonly tookMs: number;
}

/** Only a hang takes longer. */
const TIMEOUT_MS = 60_000;

/** Sends a GET over a new connection. Never rejects. */
export function sendGet(port: number, path: string, localAddress?: string): Promise<GetResult> {
  const began = performance.now();
  return new Promise((resolve) => {
    const finish = (status: number, body: string): void => {
      clearTimeout(timer);
      resolve({ status, body, tookMs: performance.now() - began });
    };
    const options = { port, path, host: "127.0.0.1", agent: false, ...(localAddress && { localAddress }) } as const;
    const request = get(options, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        body += chunk;
      });
      response.once("end", () => finish(response.statusCode ?? 0, body));
      response.once("error", (error) => finish(0, error.message));
    });
    const timer = setTimeout(() => request.destroy(new Error("timeout")), TIMEOUT_MS);
    request.once("error", (error) => finish(0, error.message));
  });
}
