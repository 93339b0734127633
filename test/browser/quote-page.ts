import type { Page } from "playwright-core";
import type { TestGateway } from "../support/service/in-process-gateway.js";

/** Parameters of the route that most tests quote. */
export const ROUTE = "token=USDT&from=polygon&to=arbitrum";

/** Reads what the page shows for an API field: the amount in whole tokens and the raw value. */
export async function readField(page: Page, field: string) {
  const value = page.locator(`dt:has(code:text-is("${field}")) + dd`);
  return { whole: await value.locator(".whole").allTextContents(), raw: await value.locator(".raw").textContent() };
}

/** Waits until the page shows a quote. */
export async function waitForQuote(page: Page): Promise<void> {
  await page.locator('#quote-answer[aria-busy="false"] .details').waitFor();
}

/** Returns the API's quote for an amount of USDT in its smallest unit, on the same route. */
export async function fetchQuote(
  gateway: TestGateway,
  amount: string,
): Promise<Readonly<Record<string, string | number>>> {
  const query = `amount=${amount}&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5`;
  return (await gateway.get(`/v1/quote?${query}`)).body as Readonly<Record<string, string | number>>;
}
