import type { GatewayOptions } from "../src/app/gateway.js";

type Documents = Parameters<NonNullable<GatewayOptions["extendDocuments"]>>[0];

/** What the page requests to have a transfer sent. */
const SEND_PATH = "/demo/send";

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
  documents.set(SEND_PATH, async () => {
    const body = JSON.stringify({ transactionHash: await sendOnce() });
    return { status: 200, contentType: "application/json; charset=utf-8", body };
  });
  const page = documents.get("/");
  if (page === undefined || typeof page === "function") return;
  documents.set("/", { ...page, read: async () => Buffer.from(markPage(await page.read())) });
}

/** The page shows its button for this attribute. */
function markPage(html: Buffer): string {
  return html.toString().replace("<html ", `<html data-demo="${SEND_PATH}" `);
}
