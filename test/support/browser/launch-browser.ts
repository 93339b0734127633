import { type Browser, chromium } from "playwright-core";
import { findTool } from "../find-tool.js";

/** Path of Chromium; undefined if not installed. Use with `describe.skipIf(browserPath === undefined)`. */
export const browserPath = findTool("chromium", "/usr/bin/chromium", "/usr/bin/chromium-browser");

/** Disables background network requests, and makes Chromium run without a GPU and as root. */
const BROWSER_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Starts a headless browser with a new profile. Close it in `afterAll`. */
export function launchBrowser(flags: readonly string[] = []): Promise<Browser> {
  if (browserPath === undefined) throw new Error("chromium is not installed");
  return chromium.launch({ executablePath: browserPath, headless: true, args: [...BROWSER_FLAGS, ...flags] });
}
