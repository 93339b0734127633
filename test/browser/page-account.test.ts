import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { findAccessibilityViolations, measureHorizontalOverflow, VIEWPORTS } from "../support/browser/browser-page.js";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";
import { takeCases } from "../support/effort.js";
import { startGatewayForTest } from "../support/service/in-process-gateway.js";
import { waitUntilIndexed } from "../support/service/index-coverage.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";

interface Transfer {
  readonly transferId: string;
  readonly accountAddress: string;
  readonly state: string;
  readonly timestamp: number;
}

const PAGE_SIZE = 25;
const seeded = inject("network").transfers.filter(({ expectedState }) => expectedState !== "NOT_FOUND");

describe.skipIf(browserPath === undefined)("the view of an account (needs chromium)", () => {
  const folder = useTemporaryFolder();
  const { gateway, open } = usePages(() => ({
    INDEX: `sqlite:${join(folder(), "index")}`,
    INDEX_FROM: "2020-01-01",
  }));
  /** Has sent the seeded transfers. */
  let account = "";
  beforeAll(async () => {
    const { body } = await gateway.get(`/v1/transfer-status?transferHash=${seeded[0]?.transactionHash}`);
    account = (body as Transfer).accountAddress;
    await waitUntilIndexed(gateway, inject("network").chains);
  });

  async function list(query: string) {
    const { body } = await gateway.get(`/v1/transfers?account=${account}&${query}`);
    return body as { readonly transfers: readonly Transfer[] };
  }
  /** Ids of the transfers that the page lists, in their order. */
  async function readIds(page: Page): Promise<readonly string[]> {
    const links = await page.locator("#account-answer .transfers li > a").all();
    const addresses = await Promise.all(links.map((link) => link.getAttribute("href")));
    return addresses.map((href) => new URLSearchParams(href?.split("?")[1]).get("id") ?? "");
  }
  /** Answers the watch of a page by these events, one response for each connection. */
  const streamEvents = (page: Page, responses: readonly string[]) => {
    let connections = 0;
    return page.route("**/v1/transfers:watch?**", (request) => {
      const body = `retry: 10\n\n${responses[Math.min(connections++, responses.length - 1)]}`;
      return request.fulfill({ contentType: "text/event-stream", body });
    });
  };
  const toEvent = (transfer: Transfer) => `event: transfer\nid: 1\ndata: ${JSON.stringify(transfer)}\n\n`;
  const BOOKMARK = "event: bookmark\nid: 2\ndata: {}\n\n";
  const withoutStream = (page: Page) => streamEvents(page, [BOOKMARK]);

  test.each(takeCases(["phone", "desk"] as const))(
    "lists the transfers, newest first, and filters them, on a %s",
    async (size) => {
      const { page } = await open("/#account", {
        viewport: VIEWPORTS[size],
        before: withoutStream,
        // The stream is resumed with the id of the stub's bookmark at the end, which is no token of the service.
        mayFail: /400/,
      });
      await page.getByLabel("Address of the sender or the recipient").fill(account);
      await page.keyboard.press("Enter");
      await page.locator("#account-answer .transfers li").first().waitFor();
      const first = await list(`pageSize=${PAGE_SIZE}`);
      expect(await readIds(page)).toEqual(first.transfers.map(({ transferId }) => transferId));
      expect(await page.locator("#account-announcement").textContent()).toMatch(/^\d+ transfers are shown\.$/);
      const coverage = page.locator("#account-answer .age", { hasText: "may be missing" });
      expect(await coverage.textContent()).toMatch(/^Transfers sent before .+ and changes after .+ may be missing\.$/);
      const command = await page.locator("#account-terminal .command code").first().textContent();
      expect(command).toBe(`curl '${gateway.url}/v1/transfers?account=${account}&pageSize=${PAGE_SIZE}'`);

      await page.getByLabel("State").selectOption("PENDING");
      await page.waitForFunction("location.hash.includes('state=PENDING')");
      const { transfers } = await list(`pageSize=${PAGE_SIZE}&state=PENDING`);
      await expect.poll(() => readIds(page)).toEqual(transfers.map(({ transferId }) => transferId));
      await page.locator("#view-account").getByLabel("Token").selectOption("USDT");
      const usdt = await list(`pageSize=${PAGE_SIZE}&state=PENDING&token=USDT`);
      await expect.poll(() => readIds(page)).toEqual(usdt.transfers.map(({ transferId }) => transferId));
      await page.goBack();
      await expect.poll(() => readIds(page)).toEqual(transfers.map(({ transferId }) => transferId));
      expect(await page.locator("#account-token").inputValue()).toBe("");

      const heights = await page.evaluate(
        "[...document.querySelectorAll('#account-form .field')].map((field) => field.offsetHeight)",
      );
      // A label above a control. The error and the hint of a field can add lines.
      expect(Math.max(...(heights as number[]))).toBeLessThan(100);

      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        expect(await findAccessibilityViolations(page), colorScheme).toEqual([]);
      }
      expect(await measureHorizontalOverflow(page)).toBeLessThanOrEqual(0);
      const [id] = await readIds(page);
      await page.unroute("**/v1/transfers:watch?**");
      await page.locator("#account-answer .transfers a").first().focus();
      await page.keyboard.press("Enter");
      await page
        .locator("#transfer-answer .hash", { hasText: id ?? "" })
        .first()
        .waitFor();
    },
  );

  test("shows older transfers on demand, each once", async () => {
    const { transfers } = await list("pageSize=1000");
    const { page } = await open(`/#account?of=${account}`, {
      // Pages of seven, so that there are several.
      before: async (browserPage) => {
        await withoutStream(browserPage);
        await browserPage.route("**/v1/transfers?**", (request) => {
          const url = request.request().url().replace(`pageSize=${PAGE_SIZE}`, "pageSize=7");
          return request.continue({ url });
        });
      },
    });
    const rows = page.locator("#account-answer .transfers li");
    const more = page.getByRole("button", { name: "Show older transfers" });
    await rows.first().waitFor();
    while (await more.isVisible()) {
      const before = await rows.count();
      await more.click();
      await expect.poll(() => rows.count()).toBeGreaterThan(before);
      await page.locator("#account-announcement", { hasText: "older transfers are shown" }).waitFor();
    }
    expect(await readIds(page)).toEqual(transfers.map(({ transferId }) => transferId));
    // The focus stays in the list when the button is gone.
    await expect.poll(() => page.evaluate("document.activeElement?.closest('.transfers') !== null")).toBe(true);
  });

  test("shows changes and new transfers by themselves", async () => {
    const { transfers } = await list("pageSize=1000");
    const [newest] = transfers;
    const pending = transfers.find(({ state }) => state === "PENDING");
    if (newest === undefined || pending === undefined) throw new Error("there are no transfers");
    const added = { ...newest, transferId: `0x${"ad".repeat(32)}`, state: "PENDING", timestamp: newest.timestamp + 60 };
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { page } = await open(`/#account?of=${account}`, {
      before: (browserPage) =>
        browserPage.route("**/v1/transfers:watch?**", async (request) => {
          await released;
          const body = `retry: 100000\n\n${toEvent({ ...pending, state: "BONDED" })}${toEvent(added)}`;
          await request.fulfill({ contentType: "text/event-stream", body });
        }),
    });
    const row = page.locator("#account-answer .transfers li", {
      has: page.locator(`a[href*="${pending.transferId}"]`),
    });
    await row.locator(".state", { hasText: "Pending" }).waitFor();
    await row.locator("a").focus();
    const before = await readIds(page);
    release();
    await row.locator(".state", { hasText: "Received" }).waitFor();
    await expect.poll(() => readIds(page)).toEqual([added.transferId, ...before]);
    // Other rows come and go around the focus.
    expect(await row.locator("a").evaluate((link) => link === link.ownerDocument.activeElement)).toBe(true);
    expect(await page.locator("#account-announcement").textContent()).toMatch(/^Pending: .+ from .+ to .+\.$/);
  });

  test("says where an account has no transfers, and where none matches", async () => {
    const { page } = await open(`/#account?of=0x${"12".repeat(20)}`, { before: withoutStream });
    const empty = page.locator("#account-answer .empty");
    await expect.poll(() => empty.textContent()).toBe("No transfers of this account are known.");
    await page.getByLabel("State").selectOption("UNBONDABLE");
    await expect.poll(() => empty.textContent()).toBe("No transfer of this account matches.");
    expect(await page.locator("#account-announcement").textContent()).toBe("No transfer of this account matches.");
  });

  test("shows the error of a malformed address at the field", async () => {
    const { page } = await open("/#account?of=0x12", { mayFail: /400/ });
    const { body } = await gateway.get("/v1/transfers?account=0x12");
    await page.locator("#account-of-error", { hasText: (body as { message: string }).message }).waitFor();
    expect(await page.locator("#account-of").getAttribute("aria-invalid")).toBe("true");
    expect(await page.locator("#account-stream").textContent()).toBe("");
  });

  test("explains that a gateway without an index cannot list", async () => {
    const plain = await startGatewayForTest();
    const { page } = await open(`/#account?of=${account}`, { mayFail: /400/ }, plain);
    await page.locator("#account-answer .index-required").waitFor();
    expect(await page.locator("#account-answer pre").textContent()).toBe("INDEX=sqlite:transfers.db npm start");
    expect(await findAccessibilityViolations(page)).toEqual([]);
  });

  test("lists also where no stream is accepted, and says that states are not live", async () => {
    const { page } = await open(`/#account?of=${account}`, {
      before: (browserPage) =>
        browserPage.route("**/v1/transfers:watch?**", (request) => request.fulfill({ status: 503, json: {} })),
      mayFail: /503/,
    });
    await page.locator("#account-answer .transfers li").first().waitFor();
    await page.locator("#account-stream [data-stream=refused]").waitFor();
    const opened = page.waitForRequest((request) => request.url().includes("transfers:watch"));
    await page.locator("#account-stream").getByRole("button", { name: "Try again" }).click();
    await opened;
  });
});
