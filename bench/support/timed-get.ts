import { get } from "node:http";

export interface TimedResponse {
  readonly body: string;
  /** Milliseconds from opening the connection to the last byte of the response. */
  readonly tookMs: number;
  /** When that byte arrived, by `performance.now()`. */
  readonly completedAt: number;
}

/** Sends a GET request over a new connection. Rejects on any status but 200. */
export function timedGet(url: string): Promise<TimedResponse> {
  const began = performance.now();
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk) => {
        body += chunk;
      });
      response.once("end", () => {
        const completedAt = performance.now();
        if (response.statusCode === 200) resolve({ body, tookMs: completedAt - began, completedAt });
        else reject(new Error(`${url} answered ${response.statusCode}: ${body}`));
      });
    }).once("error", reject);
  });
}
