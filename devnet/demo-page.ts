import type { IncomingHttpHeaders } from "node:http";
import type { GatewayOptions } from "../src/app/gateway.js";
import { createJsonReport } from "../src/observability/probes.js";

type Documents = Parameters<NonNullable<GatewayOptions["extendDocuments"]>>[0];

/** The page posts to this path to have a transfer sent. */
const SEND_PATH = "/demo/send";

/** What the page and the banner offer to send: on a route whose figures no documentation shows. */
export const OFFERED_TRANSFER = "--token DAI --from polygon --to optimism --amount 25";

/**
 * Adds the button to the page that sends a demo transfer, and the path that it requests. The service has neither.
 * @param send sends a transfer and returns the hash of its transaction
 */
export function addDemoToPage(documents: Documents, send: () => Promise<string>): void {
  let sending: Promise<string> | undefined;
  // Whoever asks while a transfer is being sent gets the same.
  const sendOnce = (): Promise<string> => {
    sending ??= send().finally(() => {
      sending = undefined;
    });
    return sending;
  };
  documents.set(SEND_PATH, {
    async post({ headers }) {
      if (isFromOtherSite(headers)) return createJsonReport(403, { message: "only the page of the demo may send" });
      return createJsonReport(200, { transactionHash: await sendOnce() });
    },
  });
  const page = documents.get("/");
  if (page === undefined || !("read" in page)) return;
  documents.set("/", { ...page, read: async () => Buffer.from(markPage(await page.read())) });
}

/** Browsers say on whose behalf they post; a post without a body is sent without a preflight. */
function isFromOtherSite({ origin, host }: IncomingHttpHeaders): boolean {
  return origin !== undefined && origin.replace(/^https?:\/\//, "") !== host;
}

/** The page shows its button for this attribute. */
function markPage(html: Buffer): string {
  return html.toString().replace("<html ", `<html data-demo="${SEND_PATH}" `);
}
