import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { DEFAULT_ROUTE, getTypicalAmount } from "../../web/quote/default-quote.js";
import { sampleAmounts } from "../../web/quote/rate-curve.js";
import { formatPercent, parseAmount } from "../../web/shared/format/amounts.js";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";
import { startGatewayForTest } from "../support/service/in-process-gateway.js";
import { fetchDetails, fetchQuote, ROUTE, readText } from "./quote-page.js";

/** Counts the pixels of the curve that have a colour. */
async function countPixels(page: Page, [red, green, blue]: readonly [number, number, number]): Promise<unknown> {
  return page.evaluate(`(() => {
    const canvas = document.querySelector("#curve canvas");
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d");
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, width, height);
    let count = 0;
    for (let offset = 0; offset < data.length; offset += 4) {
      if (data[offset] === ${red} && data[offset + 1] === ${green} && data[offset + 2] === ${blue} && data[offset + 3] > 200) count++;
    }
    return count;
  })()`);
}

describe.skipIf(browserPath === undefined)("the rate curve (needs chromium)", () => {
  const { gateway, open } = usePages();

  test("draws the curve and lists the API's quotes in its table", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=20000&slippage=0.5`);
    await page.locator('#curve[aria-busy="false"]').waitFor();
    // Many pixels in the colour of the line: the curve was drawn, not only the axes.
    expect(await countPixels(page, [91, 60, 196])).toBeGreaterThan(500);
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(() => countPixels(page, [179, 160, 255])).toBeGreaterThan(500);
    expect(await countPixels(page, [91, 60, 196])).toBe(0);
    await page.locator("#curve summary").click();
    const rows = await page.locator("#curve-table tbody tr").all();
    const amounts = sampleAmounts(20_000_000_000n);
    expect(rows).toHaveLength(amounts.length);
    for (const index of [0, 10, 15, 20]) {
      const [sent = "", received = "", fee = ""] = await (rows[index] as (typeof rows)[number])
        .locator("th, td")
        .allTextContents();
      const raw = (text: string): string => String(parseAmount(text.replaceAll(",", ""), 6));
      expect(raw(sent)).toBe(String(amounts[index]));
      const expected = await fetchQuote(gateway, raw(sent));
      expect([raw(received), raw(fee)]).toEqual([expected.estimatedReceived, expected.bonderFee]);
    }
    const cells = (column: string) => page.locator(`#curve-table tbody td:nth-of-type(${column})`).allTextContents();
    const impacts = await cells("4");
    // The largest amount moves the pools a lot. The API says how much, here and beside the quote.
    expect(Number.parseFloat(impacts.at(-1) ?? "")).toBeGreaterThan(50);
    const { details } = await fetchDetails(gateway, "20000000000");
    expect(impacts[10]).toBe(formatPercent((details.priceImpact ?? Number.NaN) / 100));
    expect(await readText(page, "priceImpact")).toBe(impacts[10]);
    expect(new Set(await cells("5"))).toEqual(new Set(["yes"]));
    expect(await page.locator("#curve-summary").textContent()).toMatch(
      /^The price impact is more than 1 % from \d{3},000 USDT on\./,
    );
  });

  test("completes the curve under a rate limit by waiting for Retry-After", async () => {
    const limited = await startGatewayForTest({ IP_RATE_LIMIT_REQ_PER_SEC: "8" });
    const { page } = await open(`/#quote?${ROUTE}&amount=20000`, { mayFail: /429/ }, limited);
    await page.locator('#curve[aria-busy="false"]').waitFor();
    expect(await page.locator("#curve-table tbody tr").count()).toBe(21);
    expect(await page.locator("#curve-table td[colspan]").count()).toBe(0);
  });

  test("asks for the whole curve in one call", async () => {
    const paths: string[] = [];
    const { page } = await open(`/#quote?${ROUTE}&amount=20000`, {
      before: async (browserPage) => {
        browserPage.on("request", (request) => {
          const { pathname } = new URL(request.url());
          if (pathname.startsWith("/v1/quote")) paths.push(pathname);
        });
      },
    });
    await page.locator('#curve[aria-busy="false"]').waitFor();
    expect(paths).toEqual(["/v1/quote", "/v1/quotes"]);
  });

  test("shows a route with a usual cost first", async () => {
    const { page } = await open("/");
    await page.locator('#curve[aria-busy="false"]').waitFor();
    const { token, from, to } = DEFAULT_ROUTE;
    expect(page.url()).toContain(`#quote?token=${token}&from=${from}&to=${to}&amount=${getTypicalAmount(token)}&`);
    // The first screen shows a usual cost.
    const rates = (await page.locator("#curve-table tbody td:nth-of-type(3)").allTextContents()).map(Number);
    expect(rates[10]).toBeGreaterThan(0.995);
    // The fee of a small amount has a minimum.
    expect((rates[10] ?? 0) - (rates[0] ?? 0)).toBeGreaterThan(0.002);
    expect(await page.getByRole("alert").count()).toBe(0);
  });
});
