import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import {
  findAccessibilityViolations,
  measureHorizontalOverflow,
  openBrowserPage,
  setPageHidden,
  VIEWPORTS,
} from "../support/browser/browser-page.js";
import { browserPath, launchBrowser } from "../support/browser/launch-browser.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";

interface Route {
  readonly token: string;
  readonly sourceChainSlug: string;
  readonly destinationChainSlug: string;
}

describe.skipIf(browserPath === undefined)("the page (needs chromium)", () => {
  let gateway: TestGateway;
  let browser: Browser;
  beforeAll(async () => {
    [gateway, browser] = await Promise.all([startGateway(), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
  });
  const open = (address: string, options?: Parameters<typeof openBrowserPage>[3]) =>
    openBrowserPage(browser, gateway.url, address, options);

  const received = inject("network").transfers.find(({ expectedState }) => expectedState === "BONDED");
  /** 2^256-1 in USDC's smallest unit. */
  const most = "115792089237316195423570985008687907853269984665640564039457584007913129.639935";
  /** Each view with what is there once it is all shown. */
  const views = [
    ["quote", "#quote?token=USDT&from=polygon&to=arbitrum&amount=20000.123456", '#curve[aria-busy="false"]'],
    ["quote of 18 decimals", "#quote?token=ETH&amount=1.123456789012345678", '#curve[aria-busy="false"]'],
    [
      "quote of next to nothing",
      "#quote?token=ETH&from=ethereum&amount=0.0000000000000001",
      '#curve[aria-busy="false"]',
    ],
    ["quote of all there can be", `#quote?token=USDC&from=ethereum&amount=${most}`, '#curve[aria-busy="false"]'],
    ["quote that is refused", "#quote?token=USDT&slippage=100", "#quote-answer .problem"],
    ["transfer", `#transfer?of=${received?.transactionHash}`, "#transfer-answer .facts"],
    ["transfer that nobody asked for", "#transfer", "#transfer-answer .empty"],
    ["transfer that is none", "#transfer?of=0x12", "#transfer-answer .problem"],
    ["chains", "#chains", "#chains-answer .cards .state[data-state=ok]"],
    ["routes", "#routes", "#routes-answer table"],
  ] as const;

  describe.each(["desk", "phone"] as const)("on a %s, light and dark,", (size) => {
    test.each(views)(
      "shows its %s without barriers, complaints or anything out of sight",
      async (_, address, shown) => {
        const { page, consoleProblems, close } = await open(`/${address}`, {
          viewport: VIEWPORTS[size],
          mayFail: /400/,
        });
        await page.locator(shown).first().waitFor();
        await page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true");
        for (const colorScheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
          expect(await findAccessibilityViolations(page), colorScheme).toEqual([]);
        }
        expect(await measureHorizontalOverflow(page)).toBeLessThanOrEqual(0);
        expect(consoleProblems).toEqual([]);
        await close();
      },
    );
  });

  test("leads from view to view and back, and says where one is", async () => {
    const { page, consoleProblems, close } = await open("/");
    await page.locator('#curve[aria-busy="false"]').waitFor();
    for (const name of ["Transfer", "Chains", "Routes"]) {
      await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name }).click();
      await expect.poll(() => page.title()).toBe(`${name} · hop-gateway`);
      expect(await page.locator("nav [aria-current=page]").textContent()).toBe(name);
      expect(await page.evaluate("document.activeElement.tagName")).toBe("H1");
      expect(await page.locator("main > section:visible").count()).toBe(1);
    }
    await page.goBack();
    await expect.poll(() => page.title()).toBe("Chains · hop-gateway");
    expect(consoleProblems).toEqual([]);
    await close();
  });

  test("leads to the documentation and the description of the interface", async () => {
    const { page, close } = await open("/");
    const links = await page.locator('header a[href^="/"], footer a').all();
    const paths = await Promise.all(links.map((link) => link.getAttribute("href")));
    expect(paths).toEqual(expect.arrayContaining(["/", "/docs", "/openapi.json"]));
    for (const path of paths)
      expect({ path, status: (await fetch(`${gateway.url}${path}`)).status }).toMatchObject({ status: 200 });
    await close();
  });

  test("lists every route once, and leads from it to its quote", async () => {
    const { page, consoleProblems, close } = await open("/#routes");
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
    expect(await page.locator("#routes-said").textContent()).toMatch(/^6 routes of rETH/);
    // By keyboard: what a link can do, a cell can.
    await page.getByRole("link", { name: "Quote rETH from Arbitrum to Ethereum" }).focus();
    await page.keyboard.press("Enter");
    await page.locator(".headline", { hasText: "Arrives on Ethereum" }).waitFor();
    expect(await page.locator("#quote-token").inputValue()).toBe("rETH");
    expect(await page.locator("#quote-from").inputValue()).toBe("arbitrum");
    await page.goBack();
    await expect.poll(() => page.locator("#routes-token").inputValue()).toBe("rETH");
    expect(consoleProblems).toEqual([]);
    await close();
  });

  test("shows the routes of the network that was asked for last", async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { page, close } = await open("/#routes?network=goerli", {
      before: (it) =>
        it.route("**/v1/available-routes?network=goerli", async (request) => {
          await held;
          await request.continue();
        }),
    });
    await page.goto(`${gateway.url}/#routes`);
    await page.locator("#routes-said", { hasText: /^240 routes of 11 tokens/ }).waitFor();
    release();
    // Known now, goerli is offered.
    await page.locator("#view-routes .network").waitFor();
    expect(await page.locator("#routes-said").textContent()).toMatch(/^240 routes of 11 tokens/);
    expect(await page.locator("#routes-network").inputValue()).toBe("mainnet");
    await close();
  });

  test("tells of every chain what /readyz tells", async () => {
    const { page, close } = await open("/#chains");
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
    // The local chains' first blocks are seconds old.
    await page.locator("#chains-answer [data-since]").first().waitFor();
    await close();
  });

  test("asks about chains again only while somebody sees them", async () => {
    const asked: string[] = [];
    const count = (): number => asked.filter((url) => url.endsWith("/readyz")).length;
    const { page, close } = await open("/#chains", {
      before: async (it) => {
        it.on("request", (request) => asked.push(request.url()));
      },
    });
    await page.locator("#chains-answer .cards").first().waitFor();
    await setPageHidden(page, true);
    const before = count();
    // Longer than the first pause.
    await page.waitForTimeout(2_500);
    expect(count()).toBe(before);
    await setPageHidden(page, false);
    await expect.poll(count).toBeGreaterThan(before);
    await page.getByRole("link", { name: "Routes", exact: true }).click();
    await page.locator("#routes-answer table").first().waitFor();
    const atLeaving = count();
    await page.waitForTimeout(2_500);
    expect(count()).toBe(atLeaving);
    await close();
  });

  test("tells of chains that do not answer, and where nobody tells of any", async () => {
    const chain = { network: "mainnet", chain: "polygon", chainId: 137, state: "failing", endpoints: [] };
    const unready = { status: "unready", reason: "no chain responds", chains: [chain], sources: [] };
    let answer = { status: 503, body: JSON.stringify(unready) };
    const { page, close } = await open("/#chains", {
      mayFail: /503|404/,
      before: (it) =>
        it.route("**/readyz", (request) => request.fulfill({ contentType: "application/json", ...answer })),
    });
    await page.locator(".summary", { hasText: "It takes no requests. No chain answers." }).waitFor();
    await page.locator(".cards [data-state=failing]").waitFor();
    answer = { status: 404, body: "{}" };
    await page.reload();
    await page.locator("#chains-answer .empty", { hasText: "does not tell" }).waitFor();
    answer = { status: 503, body: JSON.stringify({ message: "too much is being worked on", reason: "OVERLOADED" }) };
    await page.reload();
    await page.locator("#chains-answer .message", { hasText: "too much is being worked on" }).waitFor();
    answer = { status: 200, body: "{}" };
    await page.reload();
    await page.locator("#chains-answer .message", { hasText: "not the gateway" }).waitFor();
    await close();
  });

  test("shows its routes where the system has colours of its own", async () => {
    const { page, close } = await open("/#routes?token=USDT", { forcedColors: "active" });
    await page.locator("#routes-answer table").waitFor();
    const cell = (content: string): Promise<Buffer> =>
      page.locator(`#routes-answer tbody td:has(${content})`).first().screenshot();
    expect((await cell("a")).equals(await cell(".unseen"))).toBe(false);
    await close();
  });

  test("gives the commands that give the same, and copies them", async () => {
    const { page, close } = await open("/#quote?token=USDT&from=polygon&to=arbitrum&amount=25&slippage=0.5", {
      permissions: ["clipboard-read", "clipboard-write"],
    });
    await page.locator("#quote-terminal .command").first().waitFor();
    await page.getByRole("button", { name: "Copy the curl command" }).click();
    await page.locator("#quote-terminal [role=status]", { hasText: "is copied" }).waitFor();
    const query = "amount=25000000&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5";
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(`curl '${gateway.url}/v1/quote?${query}'`);
    const message = '{"amount":"25000000","token":"USDT","fromChain":"polygon","toChain":"arbitrum","slippage":0.5}';
    expect(await page.locator("#quote-terminal code").last().textContent()).toBe(
      `grpcurl -plaintext -d '${message}' ${new URL(gateway.url).host} hop.bridge.v1.BridgeService/GetQuote`,
    );
    await close();
  });

  test("is light or dark as its reader likes, also the next time", async () => {
    const { page, close } = await open("/#chains", { colorScheme: "light" });
    const background = (): Promise<unknown> => page.evaluate("getComputedStyle(document.body).backgroundColor");
    const light = await background();
    const button = page.locator("#theme");
    expect(await button.getAttribute("aria-label")).toBe("Theme: as the system");
    await button.click();
    expect(await background()).toBe(light);
    await button.click();
    expect(await button.getAttribute("aria-label")).toBe("Theme: dark");
    const dark = await background();
    expect(dark).not.toBe(light);
    await page.reload();
    await expect.poll(background).toBe(dark);
    await close();
  });

  test("is served with a policy that lets it run and ask only what comes from the service", async () => {
    const response = await fetch(`${gateway.url}/`);
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self'");
    expect(policy).not.toContain("unsafe");
    expect(await response.text()).not.toMatch(/<[^>]+ (style|on[a-z]+)=/);
  });
});
