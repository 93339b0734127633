import type { Browser, Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { sampleAmounts } from "../../web/quote/rate-curve.js";
import { parseAmount } from "../../web/shared/amounts.js";
import { openBrowserPage } from "../support/browser/browser-page.js";
import { browserPath, launchBrowser } from "../support/browser/launch-browser.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";

type Quote = Readonly<Record<string, string | number>>;

const ROUTE = "token=USDT&from=polygon&to=arbitrum";

/** What stands beside the name of a field of the interface: the amount in whole tokens, and as the interface has it. */
async function told(page: Page, field: string) {
  const value = page.locator(`dt:has(code:text-is("${field}")) + dd`);
  return { whole: await value.locator(".whole").allTextContents(), raw: await value.locator(".raw").textContent() };
}

/** How many pixels of the curve have a colour. */
async function drawnIn(page: Page, [red, green, blue]: readonly [number, number, number]): Promise<unknown> {
  return page.evaluate(`(() => {
    const canvas = document.querySelector("#curve canvas");
    const { width, height } = canvas;
    const copy = new OffscreenCanvas(width, height).getContext("2d");
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, width, height);
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
      if (data[at] === ${red} && data[at + 1] === ${green} && data[at + 2] === ${blue} && data[at + 3] > 200) count++;
    }
    return count;
  })()`);
}

/** Waits until the page has its answer. */
async function answered(page: Page): Promise<void> {
  await page.locator('#quote-answer[aria-busy="false"] .facts').waitFor();
}

describe.skipIf(browserPath === undefined)("a quote on the page (needs chromium)", () => {
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
  const quote = async (amount: string, rest = "token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5") =>
    (await gateway.get(`/v1/quote?amount=${amount}&${rest}`)).body as Quote;

  test("is the one that the interface gives, raw beside whole tokens", async () => {
    const asked: Request[] = [];
    const { page, consoleProblems, close } = await open(`/#quote?${ROUTE}&amount=25&slippage=0.5`, {
      before: async (it) => {
        it.on("request", (request) => asked.push(request));
      },
    });
    await answered(page);
    // What the browser has kept has another age than it says.
    const quoting = asked.find((request) => request.url().includes("/v1/quote"));
    expect(await quoting?.allHeaders()).toMatchObject({ "cache-control": "no-cache" });
    const direct = await quote("25000000");
    for (const field of ["amountIn", "bonderFee", "amountOutMin", "destinationAmountOutMin"]) {
      const { whole, raw } = await told(page, field);
      expect(raw).toBe(direct[field]);
      expect(String(parseAmount(whole.join("").replace(/[,A-Z ]/g, ""), 6))).toBe(direct[field]);
    }
    expect(await page.locator(".headline").textContent()).toContain(String(direct.estimatedReceived));
    for (const field of ["deadline", "destinationDeadline"]) {
      expect(Math.abs(Number((await told(page, field)).raw) - Number(direct[field]))).toBeLessThan(60);
    }
    expect(await page.locator("#quote-raw").textContent()).toBe("25 is 25000000 in the smallest unit.");
    expect(await page.locator("#quote-said").textContent()).toContain("of 25 USDT from Polygon arrive on Arbitrum");
    expect(await page.locator("#quote-answer .age").textContent()).toMatch(/were read \d+ s ago/);
    expect(consoleProblems).toEqual([]);
    await close();
  });

  test("towards ethereum names no swap there, and no deadline", async () => {
    const { page, close } = await open("/#quote?token=USDT&from=polygon&to=ethereum&amount=1000&slippage=0.5");
    await answered(page);
    expect((await told(page, "destinationAmountOutMin")).raw).toBe("0");
    expect((await told(page, "destinationDeadline")).raw).toBe("0");
    await close();
  });

  test("has a curve that is drawn, and a table that is the interface's", async () => {
    const { page, consoleProblems, close } = await open(`/#quote?${ROUTE}&amount=20000&slippage=0.5`);
    await page.locator('#curve[aria-busy="false"]').waitFor();
    // The line's own colour, in many places: not only axes were drawn.
    expect(await drawnIn(page, [91, 60, 196])).toBeGreaterThan(500);
    await page.emulateMedia({ colorScheme: "dark" });
    await expect.poll(() => drawnIn(page, [179, 160, 255])).toBeGreaterThan(500);
    expect(await drawnIn(page, [91, 60, 196])).toBe(0);
    await page.locator("#curve summary").click();
    const rows = await page.locator("#curve-table tbody tr").all();
    const amounts = sampleAmounts(20_000_000_000n);
    expect(rows).toHaveLength(amounts.length);
    for (const index of [0, 16, 24, 32]) {
      const [sent = "", received = "", fee = ""] = await (rows[index] as (typeof rows)[number])
        .locator("th, td")
        .allTextContents();
      const raw = (text: string): string => String(parseAmount(text.replaceAll(",", ""), 6));
      expect(raw(sent)).toBe(String(amounts[index]));
      const direct = await quote(raw(sent));
      expect([raw(received), raw(fee)]).toEqual([direct.estimatedReceived, direct.bonderFee]);
    }
    // The largest amount moves the pools: it says so, and the amount asked for hardly does.
    const impacts = await page.locator("#curve-table tbody td:last-child").allTextContents();
    expect(Number.parseFloat(impacts.at(-1) ?? "")).toBeGreaterThan(50);
    expect(Number.parseFloat(impacts[0] ?? "")).toBe(0);
    expect(await page.locator("#curve-summary").textContent()).toMatch(
      /^The price impact passes 1 % before \d{3},000 USDT\. /,
    );
    expect(await page.locator("#quote-impact").textContent()).toBe(
      `${impacts[16]}, held against the rate for 200 USDT`,
    );
    expect(consoleProblems).toEqual([]);
    await close();
  });

  test("has its curve also where requests are limited: it waits as long as it is told to", async () => {
    const limited = await startGateway({ IP_RATE_LIMIT_REQ_PER_SEC: "8" });
    const { page, close } = await openBrowserPage(browser, limited.url, `/#quote?${ROUTE}&amount=20000`, {
      mayFail: /429/,
    });
    await page.locator('#curve[aria-busy="false"]').waitFor();
    expect(await page.locator("#curve-table tbody tr").count()).toBe(33);
    expect(await page.locator("#curve-table td[colspan]").count()).toBe(0);
    await close();
    await limited.stop();
  });

  test("with a wrong parameter shows the service's words at its field", async () => {
    const { page, close, consoleProblems } = await open(`/#quote?${ROUTE}&amount=25&slippage=100`, { mayFail: /400/ });
    const { body } = await gateway.get(
      "/v1/quote?amount=25000000&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=100",
    );
    const { message } = body as { message: string };
    await page.locator(`#quote-answer :text("${message}")`).waitFor();
    expect(await page.locator("#quote-answer").textContent()).toContain("INVALID_PARAMETER");
    expect(await page.locator("#quote-slippage-problem").textContent()).toBe(message);
    expect(await page.locator("#quote-slippage").getAttribute("aria-invalid")).toBe("true");
    await page.locator("#quote-slippage").fill("1");
    await answered(page);
    expect(await page.locator("#quote-slippage").getAttribute("aria-invalid")).toBeNull();
    expect(consoleProblems).toEqual([]);
    await close();
  });

  test("of an amount that is none is not asked for", async () => {
    const { page, close } = await open(`/#quote?${ROUTE}&amount=25`);
    await page.locator('#curve[aria-busy="false"]').waitFor();
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.locator("#quote-amount").fill("1.2345678");
    await page.locator("#quote-amount-problem", { hasText: "at most 6 decimals; the amount has 7" }).waitFor();
    await page.locator("#quote-amount").fill("1,5");
    await page.locator("#quote-amount-problem", { hasText: "plain digits" }).waitFor();
    expect(asked.filter((asking) => asking.includes("/v1/"))).toEqual([]);
    expect(await page.locator("#quote-answer .facts").count()).toBe(0);
    await close();
  });

  test("is in the smallest unit where the page does not know a token's decimals", async () => {
    const { page, close } = await open(`/#quote?${ROUTE}&amount=25000000`, {
      before: (it) => it.route("**/assets/tokens.json", (request) => request.fulfill({ json: {} })),
    });
    await answered(page);
    expect(await page.locator("#quote-unit").textContent()).toBe("smallest unit");
    expect(await told(page, "amountIn")).toEqual({ whole: ["25,000,000 × smallest unit of USDT"], raw: "25000000" });
    await close();
  });

  test("is not given as long as it is not known what a whole token is", async () => {
    let isDown = true;
    const asked: string[] = [];
    const { page, close } = await open(`/#quote?${ROUTE}&amount=25`, {
      mayFail: /ERR_FAILED/,
      before: async (it) => {
        it.on("request", (request) => asked.push(request.url()));
        await it.route("**/assets/tokens.json", (request) => (isDown ? request.abort() : request.continue()));
      },
    });
    await page.locator("#quote-answer .message", { hasText: "cannot be reached" }).waitFor();
    expect(asked.filter((url) => url.includes("/v1/quote"))).toEqual([]);
    isDown = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await answered(page);
    expect((await told(page, "amountIn")).raw).toBe("25000000");
    await close();
  });

  test("is as old as the service says", async () => {
    const { page, close } = await open(`/#quote?${ROUTE}&amount=25`, {
      before: (it) =>
        it.route("**/v1/quote?**", async (request) => {
          const response = await request.fetch();
          await request.fulfill({ response, headers: { ...response.headers(), age: "7300" } });
        }),
    });
    await page.locator("#quote-answer .age", { hasText: "were read 2 h ago" }).waitFor();
    await close();
  });

  test("that has to wait says why, and for how long", async () => {
    let waits = 1;
    const body = JSON.stringify({ message: "too many requests of this caller", reason: "RATE_LIMITED" });
    const { page, close } = await open(`/#quote?${ROUTE}&amount=25`, {
      mayFail: /429/,
      before: (it) =>
        it.route("**/v1/quote?**", (request) =>
          waits-- > 0
            ? request.fulfill({ status: 429, headers: { "retry-after": "1" }, contentType: "application/json", body })
            : request.continue(),
        ),
    });
    const why = "Not yet: too many requests of this caller. The gateway is asked again in 1 s.";
    await page.locator("#quote-slow", { hasText: why }).waitFor();
    await answered(page);
    expect(await page.locator("#quote-slow").textContent()).toBe("");
    await close();
  });

  test("that is still being typed does not come in the way of another view", async () => {
    const { page, close } = await open(`/#quote?${ROUTE}&amount=25`);
    await answered(page);
    await page.locator("#quote-amount").fill("26");
    await page.locator("#link-chains").click();
    // Longer than it takes for an amount to count as typed.
    await page.waitForTimeout(700);
    expect(await page.title()).toBe("Chains · hop-gateway");
    expect(page.url()).toMatch(/#chains$/);
    await close();
  });

  test("of so little that rounding is all there is has no price impact", async () => {
    const { page, close } = await open("/#quote?token=USDT&from=ethereum&to=arbitrum&amount=0.000123");
    await page.locator('#curve[aria-busy="false"]').waitFor();
    expect(await page.locator("#quote-impact").textContent()).toBe("Not known: the amount is too small to tell");
    expect(await page.locator("#curve-summary").textContent()).toContain("too small to tell");
    const impacts = await page.locator("#curve-table tbody td:last-child").allTextContents();
    expect([...new Set(impacts)]).toEqual(["not known"]);
    await close();
  });

  test("of a fee far above the amount says so in words", async () => {
    const { page, close } = await open(`/#quote?${ROUTE}&amount=0.000001`);
    await answered(page);
    expect(await page.locator('dt:has(code:text-is("bonderFee")) + dd .note').textContent()).toBe(
      "more than the amount",
    );
    expect(await page.locator("#quote-answer .warning").textContent()).toContain("Nothing arrives");
    await close();
  });

  test("that is slow never takes the place of a newer one", async () => {
    const aborted: string[] = [];
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { page, close } = await open(`/#quote?${ROUTE}&amount=25`, {
      before: async (it) => {
        it.on("requestfailed", (request) => aborted.push(request.url()));
        await it.route(/amount=7000000&/, async (request) => {
          await held;
          await request.continue().catch(() => {});
        });
      },
    });
    await answered(page);
    await page.locator("#quote-amount").fill("7");
    await page.locator("#quote-slow", { hasText: "Still waiting" }).waitFor();
    await page.locator("#quote-amount").fill("8");
    await page.locator(".raw", { hasText: /^8000000$/ }).waitFor();
    release();
    await page.locator('#curve[aria-busy="false"]').waitFor();
    expect((await told(page, "amountIn")).raw).toBe("8000000");
    expect(aborted.some((url) => url.includes("amount=7000000&"))).toBe(true);
    await close();
  });

  test("that cannot be given says why, and can be tried again", async () => {
    let isDown = true;
    const { page, close } = await open(`/#quote?${ROUTE}&amount=25`, {
      mayFail: /503/,
      before: (it) =>
        it.route(/\/v1\/quote/, (request) =>
          isDown
            ? request.fulfill({
                status: 503,
                contentType: "application/json",
                body: JSON.stringify({
                  code: "unavailable",
                  message: "polygon <b>is silent</b>",
                  reason: "UPSTREAM_UNAVAILABLE",
                }),
              })
            : request.continue(),
        ),
    });
    // As text, whatever is in it.
    await page.locator("#quote-answer .message", { hasText: "polygon <b>is silent</b>" }).waitFor();
    expect(await page.locator("#quote-answer .reason").textContent()).toBe("HTTP 503 UPSTREAM_UNAVAILABLE");
    expect(await page.locator("#curve").isVisible()).toBe(false);
    isDown = false;
    await page.getByRole("button", { name: "Try again" }).click();
    await answered(page);
    await close();
  });

  test("can be wished for on every route that there is, and on no other", async () => {
    const { page, close } = await open("/#quote?token=MATIC");
    await answered(page);
    const routes = (await gateway.get("/v1/available-routes")).body as Readonly<Record<string, string>>[];
    const options = (id: string): Promise<(string | null)[]> =>
      page
        .locator(`#${id} option`)
        .all()
        .then((all) => Promise.all(all.map((option) => option.getAttribute("value"))));
    for (const token of ["MATIC", "SNX", "USDC.e"]) {
      await page.locator("#quote-token").selectOption(token);
      await page.locator("#quote-unit", { hasText: token }).waitFor();
      const its = routes.filter((route) => route.token === token);
      expect(await options("quote-from")).toEqual([...new Set(its.map((route) => route.sourceChainSlug))]);
      const from = await page.locator("#quote-from").inputValue();
      const destinations = its
        .filter((route) => route.sourceChainSlug === from)
        .map((route) => route.destinationChainSlug);
      expect(await options("quote-to")).toEqual(destinations);
    }
    await page.goto(`${gateway.url}/#quote?token=SNX`);
    // It leaves optimism only.
    await expect.poll(() => page.locator("#quote-swap").isDisabled()).toBe(true);
    await close();
  });

  test("has an address: it can be shared, and the back button leads to the one before", async () => {
    const { page, close } = await open(`/#quote?${ROUTE}&amount=25&slippage=1`);
    await answered(page);
    await page.locator("#quote-swap").click();
    await page.locator(".headline", { hasText: "Arrives on Polygon" }).waitFor();
    const shared = page.url();
    expect(shared).toContain("from=arbitrum&to=polygon&amount=25&slippage=1");
    await page.goBack();
    await page.locator(".headline", { hasText: "Arrives on Arbitrum" }).waitFor();
    expect(await page.locator("#quote-from").inputValue()).toBe("polygon");
    await close();

    const other = await open(new URL(shared).hash.replace(/^/, "/"));
    await other.page.locator(".headline", { hasText: "Arrives on Polygon" }).waitFor();
    await other.close();
  });

  test("of a route that there is not is told to be of another", async () => {
    const { page, close } = await open("/#quote?token=SNX&from=base&to=linea");
    await answered(page);
    expect(await page.locator("#quote-notice").textContent()).toBe(
      "No route of SNX from Base to Linea is listed. This is SNX from Optimism to Ethereum.",
    );
    await close();
  });

  test("can be had by keyboard alone", async () => {
    const { page, close } = await open("/");
    await answered(page);
    const focused = (): Promise<unknown> => page.evaluate("document.activeElement.id");
    const tabTo = async (id: string): Promise<void> => {
      for (let presses = 0; (await focused()) !== id; presses++) {
        expect(presses, `Tab leads to ${id}`).toBeLessThan(20);
        await page.keyboard.press("Tab");
      }
    };
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("skip");
    await page.keyboard.press("Enter");
    expect(await focused()).toBe("main");
    await tabTo("quote-token");
    await page.keyboard.type("USDT");
    await page.locator("#quote-unit", { hasText: "USDT" }).waitFor();
    await tabTo("quote-from");
    await page.keyboard.type("Poly");
    await tabTo("quote-amount");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("123.45");
    await page.keyboard.press("Enter");
    await page.locator(".raw", { hasText: /^123450000$/ }).waitFor();
    expect(await page.locator("#quote-from").inputValue()).toBe("polygon");
    // What was typed in is still there to be typed on.
    expect(await focused()).toBe("quote-amount");
    await close();
  });
});
