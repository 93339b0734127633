import axe from "axe-core";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";

export interface BrowserPage {
  readonly page: Page;
  /** What the browser had to say against it: errors, warnings, violations of its policy, requests to others. */
  readonly consoleProblems: readonly string[];
  close(): Promise<void>;
}

/** Sizes at which pages must be good: a desk, and the smallest phone, which is also a desk at four times the size. */
export const VIEWPORTS = { desk: { width: 1280, height: 900 }, phone: { width: 320, height: 640 } } as const;

/**
 * Opens a page of the service in a browser of its own: nothing is kept from another one.
 * @param url of the service
 * @param address what follows it, such as `/#quote`
 * @param options `mayFail`: statuses which the browser may say that requests were answered with
 */
export async function openBrowserPage(
  browser: Browser,
  url: string,
  address: string,
  options: BrowserContextOptions & {
    readonly mayFail?: RegExp;
    readonly before?: (page: Page) => Promise<unknown>;
  } = {},
): Promise<BrowserPage> {
  const { mayFail, before, ...rest } = options;
  const context = await browser.newContext({ viewport: VIEWPORTS.desk, locale: "en-GB", timezoneId: "UTC", ...rest });
  const page = await context.newPage();
  const consoleProblems: string[] = [];
  page.on("console", (message) => {
    const isExpected =
      mayFail !== undefined && message.text().includes("Failed to load resource") && mayFail.test(message.text());
    if (["error", "warning"].includes(message.type()) && !isExpected) consoleProblems.push(message.text());
  });
  page.on("pageerror", (error) => consoleProblems.push(String(error)));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) consoleProblems.push(`asks ${request.url()}`);
  });
  await page.addInitScript(
    "addEventListener('securitypolicyviolation', ({ violatedDirective }) => console.error('policy', violatedDirective))",
  );
  await before?.(page);
  await page.goto(`${url}${address}`);
  return { page, consoleProblems, close: () => context.close() };
}

/** WCAG 2.2 A and AA, and what axe holds for good practice. */
const AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** What axe finds wrong with the page as it is shown now: a line for each element. */
export async function findAccessibilityViolations(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source);
  const options = JSON.stringify({ runOnly: AXE_TAGS, rules: { "target-size": { enabled: true } } });
  const { violations } = (await page.evaluate(`axe.run(document, ${options})`)) as {
    violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[];
  };
  return violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} (${impact}) ${target.join(" ")}: ${failureSummary}`),
  );
}

/** How many pixels of a page are out of sight to the right. */
export async function measureHorizontalOverflow(page: Page): Promise<number> {
  return (await page.evaluate("document.documentElement.scrollWidth - innerWidth")) as number;
}

/** Lets the page think that its tab went to the back, or came to the front again: a browser without a window has but one. */
export async function setPageHidden(page: Page, hidden: boolean): Promise<void> {
  await page.evaluate(`Object.defineProperty(document, "hidden", { value: ${hidden}, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));`);
}
