import axe from "axe-core";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { expect, onTestFinished } from "vitest";

/** A page that is closed at the end of the running test. */
export interface BrowserPage {
  readonly page: Page;
  close(): Promise<void>;
}

/** Tested viewports: a desktop, the smallest phone, which also equals a desktop at 400 % zoom (WCAG 1.4.10), and a usual one. */
export const VIEWPORTS = {
  desk: { width: 1280, height: 900 },
  phone: { width: 320, height: 640 },
  widePhone: { width: 390, height: 844 },
} as const;

/**
 * Opens a page of the service in a new browser context, which shares no state with others, until the end of the running
 * test. That fails on console errors and warnings, violations of the content security policy, and requests to other origins.
 * @param url URL of the service
 * @param address path and fragment, such as `/#quote`
 * @param options `mayFail`: statuses of failed requests that the browser may report; `before`: runs before the page loads
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
  const { mayFail, before, ...contextOptions } = options;
  const context = await browser.newContext({
    viewport: VIEWPORTS.desk,
    locale: "en-GB",
    timezoneId: "UTC",
    ...contextOptions,
  });
  const page = await context.newPage();
  const consoleProblems: string[] = [];
  page.on("console", (message) => {
    const isResource = message.text().includes("Failed to load resource");
    // The first answer of /readyz may be that nothing has been checked yet.
    const isReadiness = message.location().url.endsWith("/readyz");
    const isExpected = isResource && (isReadiness || mayFail?.test(message.text()));
    if (["error", "warning"].includes(message.type()) && !isExpected) consoleProblems.push(message.text());
  });
  page.on("pageerror", (error) => consoleProblems.push(String(error)));
  page.on("request", (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) consoleProblems.push(`request to ${request.url()}`);
  });
  await page.addInitScript(
    "addEventListener('securitypolicyviolation', ({ violatedDirective }) => console.error('policy', violatedDirective))",
  );
  onTestFinished(async () => {
    await context.close();
    expect(consoleProblems).toEqual([]);
  });
  await before?.(page);
  await page.goto(`${url}${address}`);
  return { page, close: () => context.close() };
}

/** WCAG 2.2 A and AA, and axe's best practices. */
const AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** Returns the accessibility violations that axe finds in the current page, one line per element. */
export async function findAccessibilityViolations(page: Page): Promise<readonly string[]> {
  // Pages learn of another theme with the next frame.
  await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
  await page.evaluate(axe.source);
  const options = JSON.stringify({ runOnly: AXE_TAGS, rules: { "target-size": { enabled: true } } });
  const { violations } = (await page.evaluate(`axe.run(document, ${options})`)) as {
    violations: { id: string; impact: string; nodes: { target: string[]; failureSummary: string }[] }[];
  };
  return violations.flatMap(({ id, impact, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} (${impact}) ${target.join(" ")}: ${failureSummary}`),
  );
}

/** Returns by how many pixels the page overflows to the right. */
export async function measureHorizontalOverflow(page: Page): Promise<number> {
  return (await page.evaluate("document.documentElement.scrollWidth - innerWidth")) as number;
}

/** Simulates hiding or showing the tab, since headless pages are always visible. */
export async function setPageHidden(page: Page, hidden: boolean): Promise<void> {
  await page.evaluate(`Object.defineProperty(document, "hidden", { value: ${hidden}, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));`);
}
