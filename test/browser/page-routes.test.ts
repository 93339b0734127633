import { describe, expect, test } from "vitest";
import { findAccessibilityViolations, measureHorizontalOverflow, VIEWPORTS } from "../support/browser/browser-page.js";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";
import { takeCases } from "../support/effort.js";

interface Result {
  readonly toChain: string;
  readonly quote: { readonly estimatedReceived: string };
}

describe.skipIf(browserPath === undefined)("the routes of a token (needs chromium)", () => {
  const { gateway, open } = usePages();

  test.each(takeCases(["phone", "desk"] as const))(
    "show what 1,000 dollars bring, by one call per source, on a %s",
    async (size) => {
      const { page } = await open("/#routes", { viewport: VIEWPORTS[size] });
      await page.locator("#routes-answer table").first().waitFor();
      const batches: URL[] = [];
      let pending = 0;
      let maxPending = 0;
      const isBatch = (url: string) => new URL(url).pathname === "/v1/quotes";
      page.on("request", (request) => {
        if (!isBatch(request.url())) return;
        batches.push(new URL(request.url()));
        pending += 1;
        maxPending = Math.max(maxPending, pending);
      });
      page.on("requestfinished", (request) => {
        if (isBatch(request.url())) pending -= 1;
      });
      await page.locator("#routes-token").selectOption("USDT");
      const links = page.locator("#routes-answer a");
      await expect.poll(async () => (await links.allTextContents()).every((text) => text !== "")).toBe(true);
      const rows = await page.locator("#routes-answer tbody tr").count();
      expect([batches.length, maxPending]).toEqual([rows, 1]);

      const link = page.getByRole("link", { name: "Quote USDT from Polygon to Arbitrum" });
      const batch = batches.find(({ searchParams }) => searchParams.get("fromChain") === "polygon");
      const { body } = await gateway.get(`${batch?.pathname}${batch?.search}`);
      const { quote } = (body as { results: readonly Result[] }).results.find(
        ({ toChain }) => toChain === "arbitrum",
      ) as Result;
      const dollars = Number.parseFloat((await link.textContent())?.replaceAll(",", "") ?? "");
      expect(Math.abs(dollars - Number(quote.estimatedReceived) / 1e6)).toBeLessThan(5);
      expect(await link.getAttribute("aria-label")).toMatch(/: [0-9,.]+ dollars arrive$/);
      expect(await page.locator("#routes-summary").textContent()).toContain("1,000 dollars of USDT bring");
      expect(await findAccessibilityViolations(page)).toEqual([]);
      expect(await measureHorizontalOverflow(page)).toBeLessThanOrEqual(0);
    },
  );

  test("are asked for no more when another token is selected", async () => {
    const { page } = await open("/#routes?token=USDT", {
      before: (browserPage) =>
        browserPage.route("**/v1/quotes?*token=USDT*", async (request) => {
          await new Promise((resolve) => setTimeout(resolve, 100));
          await request.continue().catch(() => {});
        }),
    });
    const first = await page.waitForRequest((request) => new URL(request.url()).pathname === "/v1/quotes");
    expect(new URL(first.url()).searchParams.get("token")).toBe("USDT");
    await page.locator("#routes-token").selectOption("DAI");
    const tokens: (string | null)[] = [];
    page.on("request", (request) => {
      if (request.url().includes("/v1/quotes")) tokens.push(new URL(request.url()).searchParams.get("token"));
    });
    const links = page.locator("#routes-answer a");
    await expect.poll(async () => (await links.allTextContents()).every((text) => text !== "")).toBe(true);
    expect([...new Set(tokens)]).toEqual(["DAI"]);
  });

  test("stay dots without a price", async () => {
    let requests = 0;
    const { page } = await open("/#routes?token=USDT", {
      before: (browserPage) =>
        browserPage.route("**/v1/quote?*", async (request) => {
          requests += 1;
          await request.fulfill({ status: 400, json: {} });
        }),
      mayFail: /400/,
    });
    await page.locator("#routes-answer table").first().waitFor();
    await expect.poll(() => requests).toBe(1);
    expect((await page.locator("#routes-answer a").allTextContents()).join("")).toBe("");
  });
});
