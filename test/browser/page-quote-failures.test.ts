import { describe, expect, test } from "vitest";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";
import { ROUTE, readField, waitForQuote } from "./quote-page.js";

describe.skipIf(browserPath === undefined)("a quote that fails or waits (needs chromium)", () => {
  const { gateway, open } = usePages();

  test("shows the service's message at the invalid field", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=25&slippage=100`, { mayFail: /400/ });
    const { body } = await gateway.get(
      "/v1/quote?amount=25000000&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=100",
    );
    const { message } = body as { message: string };
    await page.locator(`#quote-answer :text("${message}")`).waitFor();
    expect(await page.locator("#quote-answer").textContent()).toContain("INVALID_PARAMETER");
    expect(await page.locator("#quote-slippage-error").textContent()).toBe(message);
    expect(await page.locator("#quote-slippage").getAttribute("aria-invalid")).toBe("true");
    await page.locator("#quote-slippage").fill("1");
    await waitForQuote(page);
    expect(await page.locator("#quote-slippage").getAttribute("aria-invalid")).toBeNull();
  });

  test("sends no request for an invalid amount", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=25`);
    await page.locator('#curve[aria-busy="false"]').waitFor();
    const requestedUrls: string[] = [];
    page.on("request", (request) => requestedUrls.push(request.url()));
    await page.locator("#quote-amount").fill("1.2345678");
    await page.locator("#quote-amount-error", { hasText: "at most 6 decimals; the amount has 7" }).waitFor();
    await page.locator("#quote-amount").fill("1,5");
    await page.locator("#quote-amount-error", { hasText: "plain digits" }).waitFor();
    expect(requestedUrls.filter((url) => url.includes("/v1/"))).toEqual([]);
    expect(await page.locator("#quote-answer .details").count()).toBe(0);
  });

  test("waits for the token decimals before it requests a quote", async () => {
    let isFailing = true;
    const requestedUrls: string[] = [];
    const { page } = await open(`/#quote?${ROUTE}&amount=25`, {
      mayFail: /ERR_FAILED/,
      before: async (browserPage) => {
        browserPage.on("request", (request) => requestedUrls.push(request.url()));
        await browserPage.route("**/assets/tokens.json", (request) =>
          isFailing ? request.abort() : request.continue(),
        );
      },
    });
    await page.locator("#quote-answer .message", { hasText: "cannot be reached" }).waitFor();
    expect(requestedUrls.filter((url) => url.includes("/v1/quote"))).toEqual([]);
    isFailing = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await waitForQuote(page);
    expect((await readField(page, "amountIn")).raw).toBe("25000000");
  });

  test("explains a wait for Retry-After", async () => {
    let rejections = 1;
    const body = JSON.stringify({ message: "too many requests of this caller", reason: "RATE_LIMITED" });
    const { page } = await open(`/#quote?${ROUTE}&amount=25`, {
      mayFail: /429/,
      before: (browserPage) =>
        browserPage.route("**/v1/quote?**", (request) =>
          rejections-- > 0
            ? request.fulfill({ status: 429, headers: { "retry-after": "1" }, contentType: "application/json", body })
            : request.continue(),
        ),
    });
    const notice = "Waiting: too many requests of this caller. Next attempt in 1 s.";
    await page.locator("#quote-wait", { hasText: notice }).waitFor();
    await waitForQuote(page);
    expect(await page.locator("#quote-wait").textContent()).toBe("");
  });

  test("ignores the late answer to an outdated request", async () => {
    const aborted: string[] = [];
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { page } = await open(`/#quote?${ROUTE}&amount=25`, {
      before: async (browserPage) => {
        browserPage.on("requestfailed", (request) => aborted.push(request.url()));
        await browserPage.route(/amount=7000000&/, async (request) => {
          await released;
          await request.continue().catch(() => {});
        });
      },
    });
    await waitForQuote(page);
    await page.locator("#quote-amount").fill("7");
    await page.locator("#quote-wait", { hasText: "Still waiting" }).waitFor();
    await page.locator("#quote-amount").fill("8");
    await page.locator(".raw", { hasText: /^8000000$/ }).waitFor({ state: "attached" });
    release();
    await page.locator('#curve[aria-busy="false"]').waitFor();
    expect((await readField(page, "amountIn")).raw).toBe("8000000");
    expect(aborted.some((url) => url.includes("amount=7000000&"))).toBe(true);
  });

  test("shows the error of a failed request and retries on demand", async () => {
    let isFailing = true;
    const { page } = await open(`/#quote?${ROUTE}&amount=25`, {
      mayFail: /503/,
      before: (browserPage) =>
        browserPage.route(/\/v1\/quote/, (request) =>
          isFailing
            ? request.fulfill({
                status: 503,
                contentType: "application/json",
                body: JSON.stringify({
                  code: "unavailable",
                  message: "polygon <b>does not respond</b>",
                  reason: "UPSTREAM_UNAVAILABLE",
                }),
              })
            : request.continue(),
        ),
    });
    // Rendered as text, not as markup.
    await page.locator("#quote-answer .message", { hasText: "polygon <b>does not respond</b>" }).waitFor();
    expect(await page.locator("#quote-answer .reason").textContent()).toBe("HTTP 503 UPSTREAM_UNAVAILABLE");
    expect(await page.locator("#curve").isVisible()).toBe(false);
    isFailing = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await waitForQuote(page);
  });
});
