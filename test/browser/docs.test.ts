import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import {
  findAccessibilityViolations,
  measureHorizontalOverflow,
  type openBrowserPage,
} from "../support/browser/browser-page.js";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";

const operations = [
  "getQuote",
  "batchGetQuotes",
  "getTransferStatus",
  "listTransfers",
  "watchTransfers",
  "getWithdrawal",
  "listAvailableRoutes",
] as const;
type Operation = (typeof operations)[number];

async function expectAccessibleLooks(page: Page): Promise<void> {
  for (const [width, colorScheme] of [
    [320, "light"],
    [390, "dark"],
    [1280, "light"],
    [1280, "dark"],
  ] as const) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    expect(await findAccessibilityViolations(page), `${width} ${colorScheme}`).toEqual([]);
    expect(await measureHorizontalOverflow(page), `${width}`).toBeLessThanOrEqual(0);
  }
}

describe.skipIf(browserPath === undefined)("/docs (needs chromium)", () => {
  const { gateway, open } = usePages({ CUSTOM_RPC_URLS: "public" });

  async function openDocs(options?: Parameters<typeof openBrowserPage>[3]) {
    const opened = await open("/docs", options);
    await opened.page.locator(".opblock").first().waitFor();
    return opened;
  }

  async function expandOperation(page: Page, operation: Operation) {
    const block = page.locator(`#operations-BridgeService-${operation}`);
    await block.locator(".opblock-summary-control").click();
    await block.locator(".execute").waitFor();
    const field = (name: string) => block.locator(`tr[data-param-name="${name}"]`).locator("input, select, textarea");
    /** Sends the request. Returns the URL and the response as shown on the page. */
    async function execute() {
      await block.locator(".execute").click();
      const shown = block.locator(".live-responses-table .response");
      await shown.waitFor();
      return {
        url: new URL((await block.locator(".request-url pre").textContent()) ?? ""),
        status: await shown.locator(".response-col_status").textContent(),
        body: JSON.parse((await shown.locator(".highlight-code code").first().textContent()) ?? ""),
      };
    }
    return { block, field, execute };
  }

  test("shows all operations without requests to other hosts or policy violations", async () => {
    const { page } = await openDocs();
    expect(await page.title()).toContain("hop-gateway");
    const ids = await page.locator(".opblock").evaluateAll((blocks) => blocks.map(({ id }) => id));
    expect(ids).toEqual(operations.map((operation) => `operations-BridgeService-${operation}`));
    for (const operation of operations) await expandOperation(page, operation);
    expect(await page.locator(".errors-wrapper").count()).toBe(0);
    // The list of schemas is folded.
    expect(await page.locator(".json-schema-2020-12:visible").count()).toBe(0);
    await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Routes" }).click();
    await page.waitForURL(`${gateway.url}/#routes`);
  });

  test("requests a quote with the entered parameters and shows the response", async () => {
    const { page } = await openDocs();
    const { field, execute } = await expandOperation(page, "getQuote");
    await field("amount").fill("1000000");
    await field("token").fill("USDT");
    await field("fromChain").fill("arbitrum");
    await field("toChain").fill("polygon");
    await field("slippage").fill("0.25");
    const { url, status, body } = await execute();
    expect([...url.searchParams]).toEqual([
      ["amount", "1000000"],
      ["token", "USDT"],
      ["fromChain", "arbitrum"],
      ["toChain", "polygon"],
      ["slippage", "0.25"],
      ["network", "mainnet"],
      ["view", "BASIC"],
    ]);
    expect(url.origin).toBe(gateway.url);
    expect(status).toContain("200");
    const expected = (await gateway.get(`${url.pathname}${url.search}`)).body as Record<string, unknown>;
    const { deadline, destinationDeadline, ...figures } = expected;
    expect(body).toMatchObject(figures);
    expect(Object.keys(body)).toEqual(Object.keys(expected));
    expect(Math.abs(Number(body.deadline) - Number(deadline))).toBeLessThan(60);
    expect(Math.abs(Number(body.destinationDeadline) - Number(destinationDeadline))).toBeLessThan(60);
  });

  test("has no accessibility violations or overflow at any width in either theme", async () => {
    const { page } = await openDocs();
    await expectAccessibleLooks(page);
    const { execute } = await expandOperation(page, "getQuote");
    await execute();
    await expectAccessibleLooks(page);
  });

  test("offers the chains at the fields of chains", async () => {
    const { page } = await openDocs();
    const { field } = await expandOperation(page, "getQuote");
    const id = await field("toChain").getAttribute("list");
    const options = page.locator(`#${id} option`);
    await options.first().waitFor({ state: "attached" });
    const offered = await Promise.all((await options.all()).map((option) => option.getAttribute("value")));
    expect(offered.toSorted()).toEqual([
      "arbitrum",
      "base",
      "ethereum",
      "gnosis",
      "linea",
      "nova",
      "optimism",
      "polygon",
      "polygonzk",
    ]);
  });

  test("sends a map in the format that the service parses", async () => {
    const { page } = await openDocs({ mayFail: /400/ });
    const { field, execute } = await expandOperation(page, "getQuote");
    await field("rpcUrl").fill('{"polygon":"http://127.0.0.1:1/x?y=1&z=2"}');
    const { url, status, body } = await execute();
    expect(url.searchParams.get("rpcUrl[polygon]")).toBe("http://127.0.0.1:1/x?y=1&z=2");
    // The URL arrived unchanged: the SSRF guard rejects it.
    expect(status).toContain("400");
    expect(body).toMatchObject({ reason: "RPC_URL_FORBIDDEN", field: "rpcUrl[polygon]" });
  });

  test("shows an error response", async () => {
    const { page } = await openDocs({ mayFail: /400/ });
    const { field, execute } = await expandOperation(page, "listAvailableRoutes");
    await field("token").fill("FRAX");
    const { status, body } = await execute();
    expect(status).toContain("400");
    expect(body).toMatchObject({ reason: "UNSUPPORTED_TOKEN", field: "token" });
  });

  test.each(["light", "dark"] as const)("follows the system theme: %s", async (colorScheme) => {
    const { page } = await openDocs({ colorScheme });
    const background = (await page.evaluate("getComputedStyle(document.documentElement).backgroundColor")) as string;
    const [red = 255] = background.match(/\d+/g)?.map(Number) ?? [];
    expect(background === "rgba(0, 0, 0, 0)" || red > 128 ? "light" : "dark").toBe(colorScheme);
  });
});

describe.skipIf(browserPath === undefined)("/docs/integrate (needs chromium)", () => {
  const { gateway, open } = usePages();

  test("has no accessibility violations or overflow at any width in either theme", async () => {
    const { page } = await open("/docs/integrate");
    await page.locator("pre").first().waitFor();
    await expectAccessibleLooks(page);
  });

  test("has the header of the other pages, with its theme", async () => {
    const { page } = await open("/docs/integrate", { colorScheme: "light" });
    expect(await page.locator(".aside a[aria-current]").allTextContents()).toEqual(["Integrate"]);
    const theme = page.getByRole("button", { name: /^Theme/ });
    await theme.click();
    await theme.click();
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
    await page.getByRole("link", { name: "API", exact: true }).click();
    await page.waitForURL(`${gateway.url}/docs`);
    expect(await page.locator("html").getAttribute("data-theme")).toBe("dark");
  });
});
