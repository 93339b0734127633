import type { Page } from "playwright-core";
import type { DetailedQuoteResponse, QuoteDetails } from "../../web/shared/api/api-types.js";
import type { TestGateway } from "../support/service/in-process-gateway.js";

/** Parameters of the route that most tests quote. */
export const ROUTE = "token=USDT&from=polygon&to=arbitrum";

/** Reads what the page shows for an API field: the amount in whole tokens and the raw value. */
export async function readField(page: Page, field: string) {
  const value = page.locator(`dt:has(code:text-is("${field}")) + dd`);
  return { whole: await value.locator(".whole").allTextContents(), raw: await value.locator(".raw").textContent() };
}

/** Reads the text that the page shows for an API field. */
export async function readText(page: Page, field: string): Promise<string | null> {
  return page.locator(`dt:has(code:text-is("${field}")) + dd`).textContent();
}

/** Replaces details of the quote that the page shows. */
export async function replaceDetails(page: Page, details: { [Name in keyof QuoteDetails]?: unknown }): Promise<void> {
  await page.route("**/v1/quote?**", async (request) => {
    const response = await request.fetch();
    const body = (await response.json()) as DetailedQuoteResponse;
    await request.fulfill({ response, json: { ...body, details: { ...body.details, ...details } } });
  });
}

/** Waits until the page shows a quote. */
export async function waitForQuote(page: Page): Promise<void> {
  await page.locator('#quote-answer[aria-busy="false"] .details').waitFor();
}

/** Returns the API's quote with its details for an amount of USDT in its smallest unit, on the same route. */
export async function fetchDetails(gateway: TestGateway, amount: string): Promise<DetailedQuoteResponse> {
  const query = `amount=${amount}&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5&view=FULL`;
  return (await gateway.get(`/v1/quote?${query}`)).body as DetailedQuoteResponse;
}

/** Returns the API's quote for an amount of USDT in its smallest unit, on the same route. */
export async function fetchQuote(
  gateway: TestGateway,
  amount: string,
): Promise<Readonly<Record<string, string | number>>> {
  const query = `amount=${amount}&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5`;
  return (await gateway.get(`/v1/quote?${query}`)).body as Readonly<Record<string, string | number>>;
}
