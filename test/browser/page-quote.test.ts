import type { Request } from "playwright-core";
import { describe, expect, test } from "vitest";
import { formatPercent, parseAmount } from "../../web/shared/format/amounts.js";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";
import { takeCases } from "../support/effort.js";
import { fetchDetails, fetchQuote, ROUTE, readField, readText, replaceDetails, waitForQuote } from "./quote-page.js";

describe.skipIf(browserPath === undefined)("the quote view (needs chromium)", () => {
  const { gateway, open } = usePages();

  test("shows the values of the API in whole tokens and in the smallest unit", async () => {
    const requests: Request[] = [];
    const { page } = await open(`/#quote?${ROUTE}&amount=25&slippage=0.5`, {
      before: async (browserPage) => {
        browserPage.on("request", (request) => requests.push(request));
      },
    });
    await waitForQuote(page);
    // A response from the browser's cache would be older than its Age header says.
    const quoteRequest = requests.find((request) => request.url().includes("/v1/quote"));
    expect(await quoteRequest?.allHeaders()).toMatchObject({ "cache-control": "no-cache" });
    const expected = await fetchQuote(gateway, "25000000");
    for (const field of ["amountIn", "bonderFee", "amountOutMin", "destinationAmountOutMin"]) {
      const { whole, raw } = await readField(page, field);
      expect(raw).toBe(expected[field]);
      expect(String(parseAmount(whole.join("").replace(/[,A-Z ]/g, ""), 6))).toBe(expected[field]);
    }
    expect(await page.locator(".headline").textContent()).toContain(String(expected.estimatedReceived));
    for (const field of ["deadline", "destinationDeadline"]) {
      expect(Math.abs(Number((await readField(page, field)).raw) - Number(expected[field]))).toBeLessThan(60);
    }
    expect(await page.locator("#quote-raw").textContent()).toBe("25 is 25000000 in the smallest unit.");
    expect(await page.locator("#quote-announcement").textContent()).toContain(
      "of 25 USDT from Polygon arrive on Arbitrum",
    );
    expect(await page.locator("#quote-answer .age").textContent()).toMatch(/was read \d+ s ago/);
  });

  test("says where USDC is chosen that Circle ends CCTP V1", async () => {
    const { page } = await open("/#quote?token=USDC&from=polygon&to=arbitrum&amount=1000");
    await waitForQuote(page);
    await page.locator("#quote-token-note", { hasText: "May 2027" }).waitFor();
    await page.locator("#quote-token").selectOption("USDT");
    await page.locator("#quote-token-note").waitFor({ state: "hidden" });
  });

  test("shows no destination swap for a transfer to Ethereum", async () => {
    const { page } = await open("/#quote?token=USDT&from=polygon&to=ethereum&amount=1000&slippage=0.5");
    await waitForQuote(page);
    expect((await readField(page, "destinationAmountOutMin")).raw).toBe("0");
    expect((await readField(page, "destinationDeadline")).raw).toBe("0");
  });

  const ROUTES = [
    ["polygon", "arbitrum"],
    ["ethereum", "optimism"],
    ["polygon", "ethereum"],
  ] as const;
  test.each(takeCases(ROUTES))("shows no two rows with the same value from %s to %s", async (from, to) => {
    const { page } = await open(`/#quote?token=USDT&from=${from}&to=${to}&amount=1000`);
    await waitForQuote(page);
    const values = await page.locator("#quote-answer .details dd").allTextContents();
    expect(values.toSorted()).toEqual([...new Set(values)].toSorted());
    const fields = await page.locator("#quote-answer dt code").allTextContents();
    expect(fields).toEqual(
      expect.arrayContaining(["amountOutMin", "destinationAmountOutMin", "deadline", "destinationDeadline"]),
    );
  });

  test("uses the smallest unit if the decimals of the token are unknown", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=25000000`, {
      before: (browserPage) => browserPage.route("**/assets/tokens.json", (request) => request.fulfill({ json: {} })),
    });
    await waitForQuote(page);
    expect(await page.locator("#quote-unit").textContent()).toBe("smallest unit");
    expect(await page.getByText("The decimals of this token are unknown.").isVisible()).toBe(true);
    expect(await readField(page, "amountIn")).toEqual({
      whole: ["25,000,000 × smallest unit of USDT"],
      raw: "25000000",
    });
  });

  test("shows the age from the Age header", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=25`, {
      before: (browserPage) =>
        browserPage.route("**/v1/quote?**", async (request) => {
          const response = await request.fetch();
          await request.fulfill({ response, headers: { ...response.headers(), age: "7300" } });
        }),
    });
    await page.locator("#quote-answer .age", { hasText: "was read 2 h ago" }).waitFor();
  });

  test("shows fields and raw values in the developer view only", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=25`);
    await waitForQuote(page);
    const developerOnly = page.locator("#view-quote").locator(".raw, code.field, #quote-raw");
    expect(await developerOnly.filter({ visible: true }).count()).toBe(0);
    await page.getByLabel("Developer view").check();
    expect(await developerOnly.filter({ visible: true }).count()).toBe(await developerOnly.count());
  });

  test("drops typed input when another view is opened", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=25`);
    await waitForQuote(page);
    await page.locator("#quote-amount").fill("26");
    await page.locator("#link-chains").click();
    await expect.poll(() => page.title()).toBe("Chains · hop-gateway");
    // Longer than the debounce of the form.
    await page.waitForTimeout(700);
    expect(await page.title()).toBe("Chains · hop-gateway");
    expect(page.url()).toMatch(/#chains$/);
  });

  test("shows arrival time, price impact, smallest amount and liquidity as the API does", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=20000&slippage=0.5`, {
      before: (browserPage) =>
        replaceDetails(browserPage, { deliveryTime: { p50Seconds: 240, p90Seconds: 700, samples: 12 } }),
    });
    await waitForQuote(page);
    const { details } = await fetchDetails(gateway, "20000000000");
    expect(await readText(page, "deliveryTime")).toBe("About 4 min9 of 10 within 11 min");
    expect(await readText(page, "priceImpact")).toBe(formatPercent((details.priceImpact ?? Number.NaN) / 100));
    expect((await readField(page, "limits.minAmount")).raw).toBe(details.limits.minAmount);
    expect((await readField(page, "limits.availableLiquidity")).raw).toBe(details.limits.availableLiquidity);
    expect(await page.locator("#quote-answer [role=alert]").count()).toBe(0);
  });

  test("shows what is absent as unknown", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=20000`, {
      before: (browserPage) =>
        replaceDetails(browserPage, {
          deliveryTime: undefined,
          priceImpact: undefined,
          limits: { minAmount: "", availableLiquidity: "", isLiquidityAvailable: true, liquidityBasis: "UNKNOWN" },
          prices: { tokenUsd: 0 },
        }),
    });
    await waitForQuote(page);
    expect(await page.locator("#quote-answer .facts dd").allTextContents()).toEqual([
      "Unknownno measured transfers",
      "Unknown",
      "None",
      "Unknown",
    ]);
    expect(await page.locator("#quote-answer").textContent()).not.toContain("$");
  });

  test("warns where the liquidity is too small", async () => {
    const { page } = await open("/#quote?token=HOP&from=polygon&to=arbitrum&amount=900000000");
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("alert").textContent()).toMatch(
      /^This transfer cannot be delivered now: it needs 900,000,000 HOP on Arbitrum, where [0-9,.]+ HOP are available\.$/,
    );
    expect(await page.locator(".headline .label").textContent()).toBe("Would arrive on Arbitrum");
    await page.locator('#curve[aria-busy="false"]').waitFor();
    expect(await page.locator("#curve-summary").textContent()).toContain("in the shaded range cannot be delivered");
    expect(await page.locator("#curve-table [aria-current] td").last().textContent()).toBe("no");
  });

  test("warns where a transfer loses more than 3 %", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=90000000`);
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("alert").textContent()).toMatch(
      /^This transfer loses 9\d\.\d %\. Only [0-9,.]+ USDT of 90,000,000 USDT arrive\.$/,
    );
  });

  test("warns if the fee is higher than the amount", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=0.000001`);
    await waitForQuote(page);
    expect(await page.locator('dt:has(code:text-is("bonderFee")) + dd .note').last().textContent()).toBe(
      "more than the amount",
    );
    expect(await page.getByRole("alert").textContent()).toMatch(/^Nothing arrives: .* Send at least 0\.\d+ USDT\.$/);
  });

  const FEES = [
    ["USDC", "polygon", "CCTP relayer fee"],
    ["ETH", "ethereum", "Relayer fee"],
    ["USDC", "ethereum", "CCTP relayer fee"],
    ["ETH", "optimism", "Bonder fee"],
  ] as const;
  test.each(takeCases(FEES, 2))("names the fee of %s from %s: %s", async (token, from, label) => {
    const { page } = await open(`/#quote?token=${token}&from=${from}&to=arbitrum`);
    await waitForQuote(page);
    expect(await page.locator('dt:has(code:text-is("bonderFee")) span').textContent()).toBe(label);
  });

  test("quotes what the recipient gets exactly, by a URL that can be shared", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=1000`);
    await waitForQuote(page);
    await page.getByRole("radio", { name: "Recipient gets exactly" }).check();
    await page.locator(".headline", { hasText: "You send" }).waitFor();
    expect(await readField(page, "estimatedReceived")).toEqual({ whole: ["1,000 USDT"], raw: "1000000000" });
    const sent = Number(await page.locator(".headline .raw").textContent());
    expect(sent).toBeGreaterThan(1_000_000_000);
    expect(await page.getByLabel("Amount that the recipient gets").inputValue()).toBe("1000");
    // The curve is of amounts sent, around that one.
    await page.locator('#curve[aria-busy="false"]').waitFor();
    await page.locator("#curve summary").click();
    const marked = (await page.locator("#curve-table [aria-current] th").textContent()) ?? "";
    expect(parseAmount(marked.replaceAll(",", ""), 6)).toBe(BigInt(sent));
    const shared = page.url();
    expect(shared).toContain("&receiveAmount=1000&");

    const other = await open(new URL(shared).hash.replace(/^/, "/"));
    await other.page.locator(".headline", { hasText: "You send" }).waitFor();
    expect(await other.page.getByRole("radio", { name: "Recipient gets exactly" }).isChecked()).toBe(true);
  });

  test("fills in the smallest and the largest amount of the route", async () => {
    const { page } = await open("/#quote?token=HOP&from=polygon&to=arbitrum&receiveAmount=1000");
    await waitForQuote(page);
    const { raw: minAmount } = await readField(page, "limits.minAmount");
    await page.getByRole("button", { name: "Smallest amount" }).click();
    await page.locator(".headline", { hasText: "Arrives on Arbitrum" }).waitFor();
    expect((await readField(page, "amountIn")).raw).toBe(minAmount);
    expect(await page.locator(".headline .raw").textContent()).not.toBe("0");
    await page.getByRole("button", { name: "Largest amount" }).click();
    const sent = page.locator('dt:has(code:text-is("amountIn")) + dd .raw');
    await expect.poll(() => sent.textContent()).not.toBe(minAmount);
    // It can be delivered.
    expect(await page.getByRole("alert").count()).toBe(0);
    const available = BigInt((await readField(page, "limits.availableLiquidity")).raw ?? "");
    expect(Number(await sent.textContent())).toBeGreaterThan(Number(available) * 0.99);
  });

  test("offers no largest amount where there is no limit", async () => {
    const { page } = await open("/#quote?token=HOP&from=polygon&to=arbitrum&amount=1000");
    await waitForQuote(page);
    expect(await page.locator("#quote-max").isEnabled()).toBe(true);
    await page.locator("#quote-from").selectOption("ethereum");
    await page.locator(".facts", { hasText: "No limit" }).waitFor();
    expect(await page.locator("#quote-max").isDisabled()).toBe(true);
    expect(await page.locator("#quote-min").isEnabled()).toBe(true);
  });

  test("offers exactly the routes that exist", async () => {
    const { page } = await open("/#quote?token=MATIC");
    await waitForQuote(page);
    const routes = (await gateway.get("/v1/available-routes")).body as Readonly<Record<string, string>>[];
    const options = (id: string): Promise<(string | null)[]> =>
      page
        .locator(`#${id} option`)
        .all()
        .then((all) => Promise.all(all.map((option) => option.getAttribute("value"))));
    for (const token of ["MATIC", "SNX", "USDC.e"]) {
      await page.locator("#quote-token").selectOption(token);
      await page.locator("#quote-unit", { hasText: token }).waitFor();
      const tokenRoutes = routes.filter((route) => route.token === token);
      expect(await options("quote-from")).toEqual([...new Set(tokenRoutes.map((route) => route.sourceChainSlug))]);
      const from = await page.locator("#quote-from").inputValue();
      const destinations = tokenRoutes
        .filter((route) => route.sourceChainSlug === from)
        .map((route) => route.destinationChainSlug);
      expect(await options("quote-to")).toEqual(destinations);
    }
    await page.goto(`${gateway.url}/#quote?token=SNX`);
    // SNX can be sent from Optimism only, so the route has no reverse.
    await expect.poll(() => page.locator("#quote-swap").isDisabled()).toBe(true);
  });

  test("has a URL that can be shared and a history entry", async () => {
    const { page } = await open(`/#quote?${ROUTE}&amount=25&slippage=1`);
    await waitForQuote(page);
    await page.locator("#quote-swap").click();
    await page.locator(".headline", { hasText: "Arrives on Polygon" }).waitFor();
    const shared = page.url();
    expect(shared).toContain("from=arbitrum&to=polygon&amount=25&slippage=1");
    await page.goBack();
    await page.locator(".headline", { hasText: "Arrives on Arbitrum" }).waitFor();
    expect(await page.locator("#quote-from").inputValue()).toBe("polygon");

    const other = await open(new URL(shared).hash.replace(/^/, "/"));
    await other.page.locator(".headline", { hasText: "Arrives on Polygon" }).waitFor();
  });

  test("explains that it shows another route if the requested one does not exist", async () => {
    const { page } = await open("/#quote?token=SNX&from=base&to=linea");
    await waitForQuote(page);
    expect(await page.locator("#quote-notice").textContent()).toBe(
      "There is no route for SNX from Base to Linea. The quote is for SNX from Optimism to Ethereum.",
    );
  });

  test("can be used with the keyboard alone", async () => {
    const { page } = await open("/");
    await waitForQuote(page);
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
    await page.keyboard.type("USDC");
    await page.locator("#quote-unit", { hasText: /^USDC$/ }).waitFor();
    await tabTo("quote-from");
    await page.keyboard.type("Opti");
    await tabTo("quote-amount");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("123.45");
    await page.keyboard.press("Enter");
    await page.locator(".raw", { hasText: /^123450000$/ }).waitFor({ state: "attached" });
    expect(await page.locator("#quote-from").inputValue()).toBe("optimism");
    // The input keeps the focus.
    expect(await focused()).toBe("quote-amount");
  });
});
