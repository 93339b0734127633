import { describe, expect, inject, test } from "vitest";
import { buildQuoteSnippets } from "../../web/shared/api/quote-snippets.js";
import { findAccessibilityViolations, measureHorizontalOverflow, VIEWPORTS } from "../support/browser/browser-page.js";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";
import { isFullEffort } from "../support/effort.js";

interface Route {
  readonly token: string;
  readonly sourceChainSlug: string;
  readonly destinationChainSlug: string;
}

type Look = readonly [size: keyof typeof VIEWPORTS, colorScheme: "light" | "dark", isDeveloper: boolean];
/** Sizes, themes, and whether API fields are shown: all of them, in the short form two in which each differs. */
const LOOKS: readonly Look[] = isFullEffort
  ? (["desk", "phone", "widePhone"] as const).flatMap((size) =>
      (["light", "dark"] as const).flatMap((scheme): Look[] => [
        [size, scheme, false],
        [size, scheme, true],
      ]),
    )
  : [
      ["desk", "light", false],
      ["phone", "dark", true],
    ];

describe.skipIf(browserPath === undefined)("the page (needs chromium)", () => {
  const { gateway, open } = usePages();

  const received = inject("network").transfers.find(({ expectedState }) => expectedState === "BONDED");
  const withdrawable = inject("network").transfers.find((each) => each.expectedWithdrawalState === "WITHDRAWABLE");
  /** 2^256-1 in the smallest unit of USDC. */
  const maxAmount = "115792089237316195423570985008687907853269984665640564039457584007913129.639935";
  /** Views with an element that exists once the view is complete. */
  const views = [
    ["quote", "#quote?token=USDT&from=polygon&to=arbitrum&amount=20000.123456", '#curve[aria-busy="false"]'],
    ["quote of 18 decimals", "#quote?token=ETH&amount=1.123456789012345678", '#curve[aria-busy="false"]'],
    ["quote of a tiny amount", "#quote?token=ETH&from=ethereum&amount=0.0000000000000001", '#curve[aria-busy="false"]'],
    ["quote of the largest amount", `#quote?token=USDC&from=ethereum&amount=${maxAmount}`, '#curve[aria-busy="false"]'],
    [
      "quote that cannot be delivered",
      "#quote?token=HOP&from=polygon&to=arbitrum&amount=900000000",
      '#curve[aria-busy="false"]',
    ],
    ["comparison", "#compare?token=USDT&from=polygon&dollars=900000", "#compare-answer .comparison"],
    ["comparison of the largest sum", "#compare?token=HOP&from=polygon&dollars=1000000000", ".comparison"],
    ["comparison of no sum", "#compare?dollars=none", "#compare-answer .empty"],
    ["rejected quote", "#quote?token=USDT&slippage=100", "#quote-answer .error-box"],
    ["transfer", `#transfer?of=${received?.transactionHash}`, "#transfer-answer .details"],
    ["transfer to withdraw", `#transfer?of=${withdrawable?.transactionHash}`, "#transfer-withdrawal .command"],
    ["transfer view without a transfer", "#transfer", "#transfer-answer .empty"],
    ["rejected transfer", "#transfer?of=0x12", "#transfer-answer .error-box"],
    ["account view without an account", "#account", "#account-answer .empty"],
    ["account without an index", `#account?of=0x${"12".repeat(20)}`, "#account-answer .index-required"],
    ["chains", "#chains", "#chains-answer .cards .state[data-state=ok]"],
    ["routes", "#routes", "#routes-answer table"],
  ] as const;

  test.each(views)("shows the %s without accessibility violations or overflow", async (_, address, shown) => {
    const { page } = await open(`/${address}`, { mayFail: /400/ });
    await page.locator(shown).first().waitFor();
    for (const [size, colorScheme, isDeveloper] of LOOKS) {
      await page.setViewportSize(VIEWPORTS.desk);
      await page.locator("#developer").setChecked(isDeveloper);
      await page.setViewportSize(VIEWPORTS[size]);
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true");
      expect(await findAccessibilityViolations(page), `${size} ${colorScheme}`).toEqual([]);
      expect(await measureHorizontalOverflow(page), size).toBeLessThanOrEqual(0);
    }
  });

  test("navigates between views and marks the current one", async () => {
    const { page } = await open("/");
    await page.locator('#curve[aria-busy="false"]').waitFor();
    for (const name of ["Compare", "Transfer", "Account", "Chains", "Routes"]) {
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name }).click();
      await expect.poll(() => page.title()).toBe(`${name} · hop-gateway`);
      expect(await page.locator("nav [aria-current=page]").textContent()).toBe(name);
      expect(await page.evaluate("document.activeElement.tagName")).toBe("H1");
      expect(await page.locator("main > section:visible").count()).toBe(1);
    }
    await page.goBack();
    await expect.poll(() => page.title()).toBe("Chains · hop-gateway");
  });

  test("links to the API reference and the OpenAPI description", async () => {
    const { page } = await open("/");
    const links = await page.locator('header a[href^="/"], footer a').all();
    const paths = await Promise.all(links.map((link) => link.getAttribute("href")));
    expect(paths).toEqual(expect.arrayContaining(["/", "/docs/integrate", "/docs", "/openapi.json"]));
    for (const path of paths)
      expect({ path, status: (await fetch(`${gateway.url}${path}`)).status }).toMatchObject({ status: 200 });
  });

  test("lists every route once and links it to its quote", async () => {
    const { page } = await open("/#routes");
    await page.locator("#routes-answer table").first().waitFor();
    const routes = (await gateway.get("/v1/available-routes")).body as readonly Route[];
    const links = await page.locator("#routes-answer a").all();
    const shown = await Promise.all(links.map((link) => link.getAttribute("href")));
    const expected = routes.map(({ token, sourceChainSlug, destinationChainSlug }) => {
      return `#quote?token=${token}&from=${sourceChainSlug}&to=${destinationChainSlug}`;
    });
    expect(shown.toSorted()).toEqual(expected.toSorted());

    await page.locator("#routes-token").selectOption("rETH");
    await expect.poll(() => page.locator("#routes-answer table").count()).toBe(1);
    expect(await page.locator("#routes-summary").textContent()).toMatch(/^6 routes of rETH/);
    // With the keyboard.
    await page.getByRole("link", { name: "Quote rETH from Arbitrum to Ethereum" }).focus();
    await page.keyboard.press("Enter");
    await page.locator(".headline", { hasText: "Arrives on Ethereum" }).waitFor();
    expect(await page.locator("#quote-token").inputValue()).toBe("rETH");
    expect(await page.locator("#quote-from").inputValue()).toBe("arbitrum");
    await page.goBack();
    await expect.poll(() => page.locator("#routes-token").inputValue()).toBe("rETH");
  });

  test("shows the routes of the network selected last", async () => {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { page } = await open("/#routes?network=goerli", {
      before: (browserPage) =>
        browserPage.route("**/v1/available-routes?network=goerli", async (request) => {
          await released;
          await request.continue();
        }),
    });
    await page.goto(`${gateway.url}/#routes`);
    await page.locator("#routes-summary", { hasText: /^240 routes of 11 tokens/ }).waitFor();
    release();
    // Goerli has routes, so its select appears.
    await page.locator("#view-routes .network").waitFor();
    expect(await page.locator("#routes-summary").textContent()).toMatch(/^240 routes of 11 tokens/);
    expect(await page.locator("#routes-network").inputValue()).toBe("mainnet");
  });

  describe("the transfer view after a link from another view", () => {
    async function findTransfer() {
      const opened = await open("/#routes");
      await opened.page.locator("#view-routes .network").waitFor();
      await opened.page.locator("#link-transfer").click();
      await opened.page.locator("#transfer-of").fill(received?.transactionHash ?? "");
      await opened.page.keyboard.press("Enter");
      await opened.page.locator("#transfer-answer .details").waitFor();
      return opened;
    }

    test("selects mainnet", async () => {
      const { page } = await findTransfer();
      expect(await page.locator("#transfer-network").inputValue()).toBe("mainnet");
    });

    test("leaves the default network out of the commands", async () => {
      const { page } = await findTransfer();
      const commands = await page.locator("#transfer-terminal .command code").allTextContents();
      expect(commands).toHaveLength(2);
      for (const command of commands) expect(command).not.toContain("network");
    });
  });

  test("keeps mainnet selected when another token's routes are selected", async () => {
    const { page } = await open("/#routes");
    await page.locator("#view-routes .network").waitFor();
    await page.locator("#routes-token").selectOption("rETH");
    await page.locator("#routes-summary", { hasText: /of rETH/ }).waitFor();
    expect(await page.locator("#routes-network").inputValue()).toBe("mainnet");
  });

  test("never shows an empty network select", async () => {
    const { page } = await open("/#transfer?network=unknown");
    await page.locator("#transfer-answer .empty").waitFor();
    expect(await page.locator("#transfer-network").inputValue()).toBe("mainnet");
  });

  test("shows routes in forced-colors mode", async () => {
    const { page } = await open("/#routes?token=USDT", { forcedColors: "active" });
    await page.locator("#routes-answer table").waitFor();
    const cell = (content: string): Promise<Buffer> =>
      page.locator(`#routes-answer tbody td:has(${content})`).first().screenshot();
    expect((await cell("a")).equals(await cell(".visually-hidden"))).toBe(false);
  });

  test("shows and copies the same quote in several languages", async () => {
    const { page } = await open("/#quote?token=USDT&from=polygon&to=arbitrum&amount=25&slippage=0.5", {
      permissions: ["clipboard-read", "clipboard-write"],
    });
    await page.locator("#quote-terminal .command").waitFor();
    const query = { amount: "25000000", token: "USDT", fromChain: "polygon", toChain: "arbitrum", slippage: "0.5" };
    const examples = Object.entries(buildQuoteSnippets(gateway.url, query));
    expect(examples.map(([language]) => language)).toEqual(
      await page.locator("#quote-terminal label").allTextContents(),
    );
    for (const [language, example] of examples) {
      await page.getByRole("radio", { name: language, exact: true }).check();
      await page.getByRole("button", { name: `Copy the ${language} example` }).click();
      await page.locator("#quote-terminal [role=status]", { hasText: `The ${language} example was copied.` }).waitFor();
      expect(await page.evaluate("navigator.clipboard.readText()")).toBe(example);
    }
    // Another quote keeps the language.
    await page.locator("#quote-amount").fill("26");
    await page.locator("#quote-terminal code", { hasText: "26000000" }).waitFor();
    expect(await page.getByRole("radio", { name: "grpcurl" }).isChecked()).toBe(true);
  });

  test.each([
    [
      `#transfer?transferHash=${received?.transactionHash}`,
      "#transfer-answer .details",
      `#transfer?of=${received?.transactionHash}`,
    ],
    [
      `#transfer?transferId=${received?.transferId}`,
      "#transfer-answer .details",
      `#transfer?id=${received?.transferId}`,
    ],
    [
      "#quote?fromChain=137&toChain=Arbitrum&token=USDT&amount=25000000&slippage=0.5",
      '#quote-answer[aria-busy="false"] .details',
      "#quote?token=USDT&from=polygon&to=arbitrum&amount=25&slippage=0.5",
    ],
  ])("follows the link %s with the API's names", async (link, shown, shownAs) => {
    const { page } = await open(`/${link}`);
    await page.locator(shown).waitFor();
    expect(await page.evaluate("location.hash")).toBe(shownAs);
  });

  test("stores the selected theme", async () => {
    const { page } = await open("/#chains", { colorScheme: "light" });
    const background = (): Promise<unknown> => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await background();
    const button = page.locator("#theme");
    expect(await button.getAttribute("aria-label")).toBe("Theme: system");
    await button.click();
    expect(await background()).toBe(light);
    await button.click();
    expect(await button.getAttribute("aria-label")).toBe("Theme: dark");
    const dark = await background();
    expect(dark).not.toBe(light);
    await page.reload();
    await expect.poll(background).toBe(dark);
  });

  test("shows API fields and raw values in the developer view only, and stores that choice", async () => {
    const { page } = await open(`/#transfer?of=${received?.transactionHash}`);
    await page.locator("#transfer-answer .details").waitFor();
    const hidden = page.locator("#transfer-answer :is(.raw, code.field):visible");
    const all = await page.locator("#transfer-answer :is(.raw, code.field)").count();
    expect(all).toBeGreaterThan(10);
    expect(await hidden.count()).toBe(0);
    await page.getByLabel("Developer view").check();
    await expect.poll(() => hidden.count()).toBe(all);
    await page.reload();
    await page.locator("#transfer-answer code.field", { hasText: "bonderFee" }).waitFor();
    await page.getByRole("link", { name: "Routes" }).click();
    await page.locator("#routes-answer .raw", { hasText: "arbitrum 42161" }).first().waitFor();
    await page.getByRole("link", { name: "Chains" }).click();
    await page.locator("#chains-answer code.field", { hasText: "endpoints" }).first().waitFor();
    await page.getByLabel("Developer view").uncheck();
    await page.reload();
    await page.locator("#chains-answer .cards").first().waitFor();
    expect(await page.locator("#chains-answer code.field:visible").count()).toBe(0);
  });

  test("is served with a content security policy that permits only its own origin", async () => {
    const response = await fetch(`${gateway.url}/`);
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toContain("unsafe");
    expect(await response.text()).not.toMatch(/<[^>]+ (style|on[a-z]+)=/);
  });
});
