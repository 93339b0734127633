import { describe, expect, test } from "vitest";
import { setPageHidden } from "../support/browser/browser-page.js";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";

describe.skipIf(browserPath === undefined)("the chains view (needs chromium)", () => {
  const { gateway, open } = usePages();

  test("shows every chain of /readyz", async () => {
    const { page } = await open("/#chains");
    await page.locator("#chains-answer .cards .state[data-state=ok]").first().waitFor();
    const { chains, sources } = (await gateway.get("/readyz")).body as {
      chains: { chain: string; chainId: number; network: string; endpoints: { endpoint: string }[] }[];
      sources: unknown[];
    };
    const cards = await page.locator("#chains-answer .cards > li").allTextContents();
    expect(cards).toHaveLength(chains.length);
    for (const [index, { chainId, endpoints }] of chains.entries()) {
      expect(cards[index]).toContain(`chain ${chainId}`);
      for (const { endpoint } of endpoints) expect(cards[index]).toContain(endpoint);
    }
    expect(await page.locator("#chains-answer .sources > li").count()).toBe(sources.length);
    // Only chains with CCTP have a limit. It is read in the background.
    const limit = page.locator("#chains-answer .cards > li", { hasText: "1,000,000 at most" });
    await limit.first().waitFor();
    // The local chains have heads, so ages are shown.
    await page.locator("#chains-answer [data-since]").first().waitFor();
  });

  test("polls only while the view is visible", async () => {
    const requestedUrls: string[] = [];
    const count = (): number => requestedUrls.filter((url) => url.endsWith("/readyz")).length;
    const { page } = await open("/#chains", {
      before: async (browserPage) => {
        browserPage.on("request", (request) => requestedUrls.push(request.url()));
      },
    });
    await page.locator("#chains-answer .cards").first().waitFor();
    await setPageHidden(page, true);
    const before = count();
    // Longer than the first poll interval.
    await page.waitForTimeout(2_500);
    expect(count()).toBe(before);
    await setPageHidden(page, false);
    await expect.poll(count).toBeGreaterThan(before);
    await page.getByRole("link", { name: "Routes", exact: true }).click();
    await page.locator("#routes-answer table").first().waitFor();
    const afterLeaving = count();
    await page.waitForTimeout(2_500);
    expect(count()).toBe(afterLeaving);
  });

  test("shows failing chains, a missing /readyz and responses of other servers", async () => {
    const chain = { network: "mainnet", chain: "polygon", chainId: 137, state: "failing", endpoints: [] };
    const unready = { status: "unready", reason: "no chain responds", chains: [chain], sources: [] };
    let response = { status: 503, body: JSON.stringify(unready) };
    const { page } = await open("/#chains", {
      mayFail: /503|404/,
      before: (browserPage) =>
        browserPage.route("**/readyz", (request) => request.fulfill({ contentType: "application/json", ...response })),
    });
    await page.locator(".summary", { hasText: "The service does not accept requests. No chain responds." }).waitFor();
    await page.locator(".cards [data-state=failing]").waitFor();
    response = { status: 404, body: "{}" };
    await page.reload();
    await page.locator("#chains-answer .empty", { hasText: "does not publish" }).waitFor();
    response = { status: 503, body: JSON.stringify({ message: "the server is overloaded", reason: "OVERLOADED" }) };
    await page.reload();
    await page.locator("#chains-answer .message", { hasText: "the server is overloaded" }).waitFor();
    response = { status: 200, body: "{}" };
    await page.reload();
    await page.locator("#chains-answer .message", { hasText: "does not come from the gateway" }).waitFor();
  });
});
