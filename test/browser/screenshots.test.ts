import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { browserPath, launchBrowser } from "../support/browser/launch-browser.js";
import { quantizePng } from "../support/browser/quantize-png.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";

// The pictures of the documentation. `npm run screenshots` takes them anew; else they are held to what they should be.

const folder = new URL("../../docs/images/", import.meta.url);
const isUpdate = process.env.UPDATE_SCREENSHOTS === "1";
const MAX_BYTES = 100_000;
/** What commands in the pictures show: nobody needs to listen there. */
const SHOWN_URL = "http://127.0.0.1:8000";

const desk = { width: 1280, height: 900 };
const phone = { width: 390, height: 844 };
const QUOTE = "#quote?token=USDT&from=polygon&to=arbitrum&amount=20000&slippage=0.5";
const CURVE = '#curve[aria-busy="false"]';

interface Scene {
  readonly name: string;
  readonly address: () => string;
  /** What is there once it is all shown. */
  readonly shown: string;
  readonly viewport: { readonly width: number; readonly height: number };
  readonly colorScheme: "light" | "dark";
  /** How much of the page is taken: all of it, or what is seen at first. */
  readonly fullPage: boolean;
}

const received = (): string => {
  const found = inject("network").transfers.find(({ name }) => name === "usdt-polygon-arbitrum");
  return `#transfer?of=${found?.transactionHash}`;
};
const all = { viewport: desk, colorScheme: "light", fullPage: true } as const;
const onPhone = { viewport: phone, fullPage: false } as const;
const scenes: readonly Scene[] = [
  { name: "quote", address: () => QUOTE, shown: CURVE, ...all },
  { name: "quote-dark", address: () => QUOTE, shown: CURVE, ...all, colorScheme: "dark" },
  { name: "transfer", address: received, shown: "#transfer-answer .facts", ...all },
  { name: "chains-dark", address: () => "#chains", shown: ".sources [data-state=ok]", ...all, colorScheme: "dark" },
  { name: "routes", address: () => "#routes", shown: "#routes-answer table", ...all },
  { name: "quote-phone", address: () => QUOTE, shown: CURVE, ...onPhone, fullPage: true, colorScheme: "light" },
  {
    name: "routes-phone-dark",
    address: () => "#routes?token=ETH",
    shown: "#routes-answer table",
    ...onPhone,
    colorScheme: "dark",
  },
];

describe.skipIf(!isUpdate || browserPath === undefined)("screenshots are taken (needs chromium):", () => {
  let gateway: TestGateway;
  let browser: Browser;
  beforeAll(async () => {
    [gateway, browser] = await Promise.all([startGateway(), launchBrowser()]);
    mkdirSync(folder, { recursive: true });
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
  });

  test.each(scenes)("$name", async ({ name, address, shown, viewport, colorScheme, fullPage }) => {
    const page = await browser.newPage({
      viewport,
      colorScheme,
      locale: "en-GB",
      timezoneId: "UTC",
      reducedMotion: "reduce",
    });
    await page.route(`${SHOWN_URL}/**`, (route) => answerFrom(gateway.url, route));
    await page.goto(`${SHOWN_URL}/${address()}`);
    await page.locator(shown).first().waitFor();
    await settled(page);
    writeFileSync(new URL(`${name}.png`, folder), quantizePng(await page.screenshot({ fullPage })));
    await page.close();
  });
});

describe("pictures of the page", () => {
  test.each(scenes)("$name is there, as wide as it should be, and small", ({ name, viewport }) => {
    const png = readFileSync(new URL(`${name}.png`, folder));
    expect(png.subarray(1, 4).toString()).toBe("PNG");
    // The header's first field.
    expect(png.readUInt32BE(16)).toBe(viewport.width);
    expect(png.length).toBeLessThan(MAX_BYTES);
  });
});

async function answerFrom(url: string, route: Parameters<Parameters<Page["route"]>[1]>[0]): Promise<void> {
  const { pathname, search } = new URL(route.request().url());
  await route.fulfill({ response: await route.fetch({ url: `${url}${pathname}${search}` }) });
}

/** Until what is asked for in the background has come too: the first look at the chains makes the second know more. */
async function settled(page: Page): Promise<void> {
  await page.waitForLoadState("networkidle");
  await page.waitForTimeout(2_500);
}
