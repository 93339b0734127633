import type { Page } from "playwright-core";

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
