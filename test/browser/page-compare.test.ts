import { describe, expect, test } from "vitest";
import type { BatchQuotesResponse, DetailedQuoteResponse } from "../../web/shared/api/api-types.js";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";

describe.skipIf(browserPath === undefined)("the compare view (needs chromium)", () => {
  const { gateway, open } = usePages();
  const TABLE = '#compare-answer[aria-busy="false"] .comparison';

  test("shows what a thousand dollars bring on each destination, asked in one call", async () => {
    const paths: string[] = [];
    const { page } = await open("/#compare?token=USDT&from=polygon", {
      before: async (browserPage) => {
        browserPage.on("request", (request) => {
          const { pathname } = new URL(request.url());
          if (pathname.startsWith("/v1/quote")) paths.push(pathname);
        });
      },
    });
    await page.locator(TABLE).waitFor();
    // The first one has the price.
    expect(paths).toEqual(["/v1/quote", "/v1/quotes"]);
    expect(await page.locator("#compare-summary").textContent()).toBe(
      "$1,000.00 are 1,000 USDT. Sent from Polygon, this would arrive:",
    );
    const query = "token=USDT&fromChain=polygon&amount=1000000000&slippage=0.5&view=FULL";
    const { results } = (await gateway.get(`/v1/quotes?${query}`)).body as BatchQuotesResponse<DetailedQuoteResponse>;
    const received = results.map(({ quote }) => BigInt(quote?.estimatedReceived ?? 0));
    const expected = received.toSorted((a, b) => (a < b ? 1 : -1)).map(String);
    expect(await page.locator(".comparison .raw").allTextContents()).toEqual(expected);
    const dollars = await page.locator(".comparison strong").allTextContents();
    expect(dollars[0]).toBe(`$${(Number(expected[0]) / 1e6).toFixed(2)}`);
  });

  test("says which destinations cannot be delivered to, and when others arrive", async () => {
    const { page } = await open("/#compare?token=USDT&from=polygon", {
      before: (browserPage) =>
        browserPage.route("**/v1/quotes?**", async (request) => {
          const response = await request.fetch();
          const body = (await response.json()) as BatchQuotesResponse<DetailedQuoteResponse>;
          const results = body.results.map((result) => {
            const { toChain, quote } = result;
            if (quote === undefined || toChain === "gnosis")
              return {
                toChain,
                amount: result.amount,
                error: { message: "gnosis is stalled", reason: "CHAIN_STALLED" },
              };
            const limits = { ...quote.details.limits, isLiquidityAvailable: toChain !== "optimism" };
            const deliveryTime = { p50Seconds: 240, p90Seconds: 700, samples: 3 };
            return { ...result, quote: { ...quote, details: { ...quote.details, limits, deliveryTime } } };
          });
          await request.fulfill({ response, json: { results } });
        }),
    });
    await page.locator(TABLE).waitFor();
    const rows = await page.locator(".comparison tbody tr").allTextContents();
    expect(rows[0]).toContain("After about 4 min");
    expect(rows.at(-2)).toMatch(/^Optimism.*Not possible now$/);
    expect(rows.at(-1)).toBe("Gnosisgnosis is stalled");
  });

  test("has another sum, a URL that can be shared, and links to quotes", async () => {
    const { page } = await open("/#quote?token=USDT&from=polygon&to=arbitrum");
    await page.getByRole("link", { name: "Compare all destinations" }).click();
    await page.locator(TABLE).waitFor();
    expect(page.url()).toContain("#compare?token=USDT&from=polygon&dollars=1000");
    await page.getByLabel("Dollars").fill("250.5");
    await page.keyboard.press("Enter");
    await page.locator("#compare-summary", { hasText: "$250.50 are 250.5 USDT" }).waitFor();
    expect(page.url()).toContain("dollars=250.5");
    await page.locator(TABLE).getByRole("link", { name: "Arbitrum", exact: true }).click();
    await page.locator(".headline", { hasText: "Arrives on Arbitrum" }).waitFor();
    expect(page.url()).toContain("#quote?token=USDT&from=polygon&to=arbitrum&amount=250.5&");
  });

  test("compares from ethereum too, whose quotes have no price", async () => {
    const { page } = await open("/#compare?token=ETH&from=ethereum&dollars=3000");
    await page.locator(TABLE).waitFor();
    expect(await page.locator("#compare-summary").textContent()).toBe(
      "$3,000.00 are 1 ETH. Sent from Ethereum, this would arrive:",
    );
  });

  test("asks for a sum where there is none", async () => {
    const requested: string[] = [];
    const { page } = await open("/#compare?dollars=1,000", {
      before: async (browserPage) => {
        browserPage.on("request", (request) => requested.push(request.url()));
      },
    });
    await page.locator("#compare-answer", { hasText: "Enter a sum" }).waitFor();
    expect(await page.getByLabel("Dollars").getAttribute("aria-invalid")).toBe("true");
    expect(requested.filter((url) => url.includes("/v1/quote"))).toEqual([]);
  });
});
