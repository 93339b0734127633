import type { Http2ServerResponse } from "node:http2";

/**
 * Sends 100 Continue, unless the caller has reset its stream: Node.js throws for such a stream, outside of any handler, which
 * ends the process. It does so by itself where nothing listens to "checkContinue".
 */
export function grantContinue(res: Http2ServerResponse): void {
  const { stream } = res;
  if (!stream.destroyed && !stream.closed) res.writeContinue();
}
