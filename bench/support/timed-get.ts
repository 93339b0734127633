import { get } from "node:http";

export interface TimedResponse {
  readonly body: string;
  /** From the request to the last byte of the answer, a connection of its own included. */
  readonly tookMs: number;
  /** When that byte came, as of `performance.now()`. */
  readonly completedAt: number;
}

/** GET over a new connection. Rejects at any answer but 200. */
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
        else reject(new Error(`${url} answers ${response.statusCode}: ${body}`));
      });
    }).once("error", reject);
  });
}
