import type { Browser } from "playwright-core";
import { afterAll, beforeAll } from "vitest";
import { type TestGateway, useGateway } from "../service/in-process-gateway.js";
import { type BrowserPage, openBrowserPage } from "./browser-page.js";
import { launchBrowser } from "./launch-browser.js";

/** The pages of a gateway in a browser. */
export interface Pages {
  readonly gateway: TestGateway;
  /** Opens a page such as `/#quote`, of another gateway if one is given. */
  open(address: string, options?: Parameters<typeof openBrowserPage>[3], other?: TestGateway): Promise<BrowserPage>;
}

/** Starts a gateway and a browser for the tests of the current suite and stops them after it. */
export function usePages(...args: Parameters<typeof useGateway>): Pages {
  const gateway = useGateway(...args);
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser?.close());
  return {
    gateway,
    open(address, options, { url } = gateway) {
      if (browser === undefined) throw new Error("the pages exist only while the tests run");
      return openBrowserPage(browser, url, address, options);
    },
  };
}
