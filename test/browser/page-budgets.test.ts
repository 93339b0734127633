import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { VIEWPORTS } from "../support/browser/browser-page.js";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";
import { takeCases } from "../support/effort.js";
import { ROUTE, waitForQuote } from "./quote-page.js";

/** Bytes of the quote page with everything that it loads until its curve is drawn, as transferred. */
const MAX_TRANSFERRED_BYTES = 150_000;
/** Sums of layout shifts, while the page loads and when it is updated. Up to 0.1 counts as good (web.dev/cls). */
const MAX_LOAD_SHIFT = 0.1;
const MAX_UPDATE_SHIFT = 0.001;

const OBSERVE_SHIFTS = `window.shifts = [];
new PerformanceObserver((list) => {
  for (const { value, sources } of list.getEntries())
    window.shifts.push({ value, of: sources.map(({ node }) => node?.id || node?.className || node?.nodeName) });
}).observe({ type: "layout-shift", buffered: true });`;

interface LayoutShift {
  readonly value: number;
  readonly of: readonly string[];
}

/** Returns the layout shifts since the last call. An observer is called after the frame that shifts. */
async function takeShifts(page: Page): Promise<readonly LayoutShift[]> {
  await page.evaluate("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))");
  return (await page.evaluate("shifts.splice(0)")) as readonly LayoutShift[];
}

function sumShifts(shifts: readonly LayoutShift[]): number {
  return shifts.reduce((sum, { value }) => sum + value, 0);
}

describe.skipIf(browserPath === undefined)("the quote page (needs chromium)", () => {
  const { open } = usePages();
  const CURVE = '#curve[aria-busy="false"]';

  test(`transfers less than ${MAX_TRANSFERRED_BYTES / 1000} kB`, async () => {
    let transferred = 0;
    const { page } = await open("/", {
      before: async (browserPage) => {
        const session = await browserPage.context().newCDPSession(browserPage);
        await session.send("Network.enable");
        session.on("Network.loadingFinished", ({ encodedDataLength }) => {
          transferred += encodedDataLength;
        });
      },
    });
    await page.locator(CURVE).waitFor();
    await page.waitForLoadState("networkidle");
    // The curve and its library are in it.
    expect(transferred).toBeGreaterThan(40_000);
    expect(transferred).toBeLessThan(MAX_TRANSFERRED_BYTES);
  });

  test.each(takeCases(["phone", "desk"] as const))("does not shift its layout on updates on a %s", async (size) => {
    const { page } = await open(`/#quote?${ROUTE}&amount=20000`, {
      viewport: VIEWPORTS[size],
      before: (browserPage) => browserPage.addInitScript(OBSERVE_SHIFTS),
    });
    await waitForQuote(page);
    await page.locator(CURVE).waitFor();
    const loadShifts = await takeShifts(page);
    expect(sumShifts(loadShifts), JSON.stringify(loadShifts)).toBeLessThan(MAX_LOAD_SHIFT);
    // The age of the chain data, once a second.
    const age = page.locator("#quote-answer .age");
    const before = await age.textContent();
    await expect.poll(() => age.textContent()).not.toBe(before);
    const ageShifts = await takeShifts(page);
    expect(sumShifts(ageShifts), JSON.stringify(ageShifts)).toBe(0);
    // Another amount, by its link, so that the shifts do not count as caused by input.
    await page.evaluate(`location.hash = "quote?${ROUTE}&amount=30000"`);
    await page.locator(".details", { hasText: "30,000 USDT" }).waitFor();
    await page.locator(CURVE).waitFor();
    const shifts = await takeShifts(page);
    expect(sumShifts(shifts), JSON.stringify(shifts)).toBeLessThan(MAX_UPDATE_SHIFT);
  });

  const HASH = "0x2a6e5685b82b1262614ea73a4000775147af693d53e5feeeeebf33910d264ca5";
  const views: readonly (readonly [string, string, string])[] = [
    ["comparison", "#compare", "#compare-answer .comparison"],
    ["transfer", `#transfer?transferHash=${HASH}`, "#transfer-answer .timeline"],
    ["chains", "#chains", "#chains-answer .summary"],
    ["routes", "#routes", "#routes-answer table"],
  ];
  test.each(views.flatMap((view) => takeCases(["phone", "desk"] as const).map((size) => [...view, size] as const)))(
    "the view at %s does not shift its layout while it loads",
    async (_, address, shown, size) => {
      const { page } = await open(`/${address}`, {
        viewport: VIEWPORTS[size],
        before: (browserPage) => browserPage.addInitScript(OBSERVE_SHIFTS),
      });
      await page.locator(shown).first().waitFor();
      const shifts = await takeShifts(page);
      expect(sumShifts(shifts), JSON.stringify(shifts)).toBeLessThan(MAX_LOAD_SHIFT);
    },
  );
});
