import type { Browser } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { startGateway, type TestGateway } from "../service/in-process-gateway.js";
import { type BrowserPage, openBrowserPage } from "./browser-page.js";
import { launchBrowser } from "./launch-browser.js";

/** The pages of a gateway in a browser. */
export interface Pages {
  gateway(): TestGateway;
  browser(): Browser;
  /** Opens a page such as `/#quote`. */
  open(address: string, options?: Parameters<typeof openBrowserPage>[3]): Promise<BrowserPage>;
}

/** Starts a gateway and a browser for the tests of the current suite and stops them after it. */
export function usePages(environment: Readonly<Record<string, string>> = {}): Pages {
  let started: readonly [TestGateway, Browser] | undefined;
  beforeAll(async () => {
    started = await Promise.all([startGateway(environment), launchBrowser()]);
  });
  afterAll(async () => {
    const [gateway, browser] = started ?? [];
    await browser?.close();
    await gateway?.stop();
  });
  const get = (): readonly [TestGateway, Browser] => {
    if (started === undefined) throw new Error("the pages exist only while the tests run");
    return started;
  };
  return {
    gateway: () => get()[0],
    browser: () => get()[1],
    open: (address, options) => openBrowserPage(get()[1], get()[0].url, address, options),
  };
}
