import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { browserPath, launchBrowser } from "../support/browser/launch-browser.js";
import { quantizePng } from "../support/browser/quantize-png.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";
import { waitUntilIndexed } from "../support/service/index-coverage.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";

// The images of the documentation. `npm run screenshots` takes them; without it, only their format is checked.

const IMAGE_FOLDER = new URL("../../docs/images/", import.meta.url);
const isUpdate = process.env.UPDATE_SCREENSHOTS === "1";
const MAX_BYTES = 100_000;
/** The address in the images. The browser connects to the gateway of the test instead. */
const SHOWN_HOST = "127.0.0.1:8000";

const DESK = { width: 1280, height: 900 };
const PHONE = { width: 390, height: 844 };
const QUOTE = "#quote";
const CURVE = '#curve[aria-busy="false"]';

interface Scene {
  readonly name: string;
  readonly address: () => string;
  /** Selector of an element that exists once the view is complete. */
  readonly shown: string;
  readonly viewport: { readonly width: number; readonly height: number };
  readonly colorScheme: "light" | "dark";
  /** Whether to take the whole page or only the viewport. */
  readonly fullPage: boolean;
}

/** Anvil's second account, which has sent the seeded transfers. */
const SENDER = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const ACCOUNT = `#account?of=${SENDER}&token=USDT`;
const TRANSFER = "#transfer-answer .details";
const COMPARISON = "#compare-answer .comparison";
const LIST = "#account-answer .transfers li";
/** A table whose every route has a number. */
const VALUES = "#routes-answer .values:not(:has(tbody a:empty))";

const getTransferHash = (): string => {
  const transfer = inject("network").transfers.find(({ name }) => name === "usdt-polygon-arbitrum");
  return `#transfer?of=${transfer?.transactionHash}`;
};
const ON_DESK = { viewport: DESK, colorScheme: "light", fullPage: true } as const;
const ON_PHONE = { viewport: PHONE, fullPage: false } as const;
const SCENES: readonly Scene[] = [
  { name: "quote", address: () => QUOTE, shown: CURVE, ...ON_DESK },
  { name: "quote-dark", address: () => QUOTE, shown: CURVE, ...ON_DESK, colorScheme: "dark" },
  { name: "compare", address: () => "#compare?token=USDT&from=polygon", shown: COMPARISON, ...ON_DESK },
  { name: "transfer", address: getTransferHash, shown: TRANSFER, ...ON_DESK },
  { name: "transfer-dark", address: getTransferHash, shown: TRANSFER, ...ON_DESK, colorScheme: "dark" },
  { name: "account", address: () => ACCOUNT, shown: LIST, ...ON_DESK },
  { name: "account-phone-dark", address: () => ACCOUNT, shown: LIST, ...ON_PHONE, colorScheme: "dark" },
  { name: "chains-dark", address: () => "#chains", shown: ".sources [data-state=ok]", ...ON_DESK, colorScheme: "dark" },
  { name: "routes", address: () => "#routes", shown: "#routes-answer table", ...ON_DESK },
  { name: "routes-dollars", address: () => "#routes?token=ETH", shown: VALUES, ...ON_DESK },
  { name: "quote-phone", address: () => QUOTE, shown: CURVE, ...ON_PHONE, fullPage: true, colorScheme: "light" },
  {
    name: "routes-phone-dark",
    address: () => "#routes?token=ETH",
    shown: VALUES,
    ...ON_PHONE,
    colorScheme: "dark",
  },
];

describe.skipIf(!isUpdate || browserPath === undefined)("taking screenshots (needs chromium):", () => {
  const folder = useTemporaryFolder();
  let gateway: TestGateway;
  let browser: Browser;
  beforeAll(async () => {
    const INDEX = `sqlite:${join(folder(), "index")}`;
    gateway = await startGateway({ INDEX, INDEX_FROM: "2020-01-01" });
    browser = await launchBrowser([`--host-resolver-rules=MAP ${SHOWN_HOST} ${new URL(gateway.url).host}`]);
    await waitUntilIndexed(gateway, inject("network").chains);
    mkdirSync(IMAGE_FOLDER, { recursive: true });
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
  });

  test.each(SCENES)("$name", async ({ name, address, shown, viewport, colorScheme, fullPage }) => {
    const page = await browser.newPage({
      viewport,
      colorScheme,
      locale: "en-GB",
      timezoneId: "UTC",
      reducedMotion: "reduce",
    });
    await page.goto(`http://${SHOWN_HOST}/${address()}`);
    await page.locator(shown).first().waitFor();
    await waitUntilSettled(page);
    writeFileSync(new URL(`${name}.png`, IMAGE_FOLDER), quantizePng(await page.screenshot({ fullPage })));
    await page.close();
  });
});

describe("images of the documentation", () => {
  test.each(SCENES)("$name exists, has the width of its viewport, and is small", ({ name, viewport }) => {
    const png = readFileSync(new URL(`${name}.png`, IMAGE_FOLDER));
    expect(png.subarray(1, 4).toString()).toBe("PNG");
    // The width is the first field of the IHDR chunk.
    expect(png.readUInt32BE(16)).toBe(viewport.width);
    expect(png.length).toBeLessThan(MAX_BYTES);
  });
});

/** Waits for background requests too: the second poll of the chains knows more than the first. A stream stays open. */
async function waitUntilSettled(page: Page): Promise<void> {
  await page.waitForTimeout(2_500);
}
