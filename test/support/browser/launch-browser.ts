import { type Browser, chromium } from "playwright-core";
import { findTool } from "../find-tool.js";

/** Where Chromium is, or undefined: `describe.skipIf(browserProgram === undefined)`. */
export const browserPath = findTool("chromium", "/usr/bin/chromium", "/usr/bin/chromium-browser");

/** It speaks to nobody by itself, and needs neither a screen nor a user other than root. */
const BROWSER_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** A browser without a window, with a fresh profile. Close it in `afterAll`. */
export function launchBrowser(): Promise<Browser> {
  if (browserPath === undefined) throw new Error("there is no chromium on this machine");
  return chromium.launch({ executablePath: browserPath, headless: true, args: BROWSER_FLAGS });
}
