import { describe, expect, test } from "vitest";
import { addDemoToPage, OFFERED_TRANSFER } from "../../devnet/demo-page.js";
import { parseSendArguments } from "../../devnet/send-arguments.js";
import { sendQuotedTransfer } from "../../devnet/transfer/send-quoted-transfer.js";
import { findAccessibilityViolations, VIEWPORTS } from "../support/browser/browser-page.js";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";
import { startGatewayForTest } from "../support/service/in-process-gateway.js";
import { useOwnNetwork } from "../support/service/own-network.js";

const TRANSFER = parseSendArguments(OFFERED_TRANSFER.split(" "));
/** The quotes of the documentation, there and back: the first pool of each is the second of the other. */
const DOCUMENTED = [
  "/v1/quote?amount=25000000&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5",
  "/v1/quote?amount=25000000&token=USDT&fromChain=arbitrum&toChain=polygon&slippage=0.5",
];

// Uses its own local network, because it sends transfers.
describe.skipIf(browserPath === undefined)("the page of the demo (needs chromium)", () => {
  const { network } = useOwnNetwork({ blockTimeMs: 1_000 });
  let failure: Error | undefined;
  let sentCount = 0;
  const { gateway, open } = usePages(() => network.environment, {
    extendDocuments: (documents) =>
      addDemoToPage(documents, async () => {
        if (failure !== undefined || TRANSFER === undefined) throw failure;
        sentCount++;
        return sendQuotedTransfer({ gatewayUrl: gateway.url, chains: network.chains }, TRANSFER);
      }),
  });
  const quoteMinimums = async (): Promise<readonly unknown[]> => {
    const answers = await Promise.all(DOCUMENTED.map((path) => gateway.get(path)));
    return answers.map(({ body }) => (body as { amountOutMin: string }).amountOutMin);
  };

  test("sends a transfer that runs through its states on the timeline", async () => {
    const minimums = await quoteMinimums();
    const { page } = await open("/#routes", { viewport: VIEWPORTS.phone, reducedMotion: "reduce" });
    await page.getByRole("button", { name: "Send a demo transfer" }).click();
    const current = page.locator("#transfer-answer .timeline [aria-current=step]");
    await current.filter({ hasText: "Waiting for a bonder" }).waitFor();
    expect(await findAccessibilityViolations(page)).toEqual([]);
    await network.bonder.deliverPending();
    const last = page.locator("#transfer-answer .timeline li[data-step=done]").last();
    await last.filter({ hasText: "Received on Optimism" }).waitFor();
    expect(await last.textContent()).toMatch(/DAI .*arrived/);
    // The chains of the demo go on: both blocks become final.
    await page.locator('#transfer-stream [data-stream="ended"]').waitFor();
    expect(await page.locator("#transfer-answer .finality").allTextContents()).toEqual(["final", "final"]);
    expect(await page.locator("#transfer-answer a[href^=http]").count()).toBe(0);
    expect(await quoteMinimums()).toEqual(minimums);
  });

  test("sends nothing for a link, a probe or another site", async () => {
    const before = sentCount;
    const send = (method: string, headers = {}) => fetch(`${gateway.url}/demo/send`, { method, headers });
    for (const method of ["GET", "HEAD", "PUT"]) {
      const { status, headers } = await send(method);
      expect([method, status, headers.get("allow")]).toEqual([method, 405, "POST, OPTIONS"]);
    }
    expect((await send("OPTIONS")).status).toBe(204);
    for (const origin of ["http://127.0.0.1:1", "https://example.org", "null"])
      expect((await send("POST", { origin })).status).toBe(403);
    expect(sentCount).toBe(before);
    expect((await send("POST", { origin: gateway.url })).status).toBe(200);
    expect(sentCount).toBe(before + 1);
  });

  test("says that a transfer was not sent", async () => {
    failure = new Error("the chain is gone");
    const { page } = await open("/#chains", { mayFail: /500|503/ });
    await page.getByRole("button", { name: "Send a demo transfer" }).click();
    await page.locator("#demo-notice", { hasText: "Not sent" }).waitFor();
    expect(await page.locator("#demo-send").isEnabled()).toBe(true);
  });

  test("has the button only there", async () => {
    const plain = await startGatewayForTest(network.environment);
    const { page } = await open("/#transfer", {}, plain);
    await page.locator("#transfer-answer .empty").waitFor();
    expect(await page.locator("#demo").isVisible()).toBe(false);
    expect((await plain.get("/demo/send")).status).toBe(404);
  });
});
