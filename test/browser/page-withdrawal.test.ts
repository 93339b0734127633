import type { Page } from "playwright-core";
import { describe, expect, inject, test } from "vitest";
import type { components } from "../../gen/openapi.js";
import { encodeWithdrawal } from "../../src/client.js";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";

type Withdrawal = components["schemas"]["GetWithdrawalResponse"];

describe.skipIf(browserPath === undefined)("a transfer that no bonder pays (needs chromium)", () => {
  const { gateway, open } = usePages();
  const panelOf = (page: Page) => page.locator("#transfer-withdrawal");

  /** Returns the first seeded transfer in a state, and the response for it. */
  async function read(state: string) {
    const seeded = inject("network").transfers.find((each) => each.expectedWithdrawalState === state);
    const { body } = await gateway.get(`/v1/withdrawal?transferId=${seeded?.transferId}`);
    expect(body).toMatchObject({ state });
    return { address: `/#transfer?id=${seeded?.transferId}`, withdrawal: body as Withdrawal };
  }

  test.each([
    ["WITHDRAWABLE", "Anybody can withdraw it now", "Withdrawn on"],
    ["WAITING_FOR_ROOT", "fails until the root has arrived", "Transfer root on"],
    ["REDEEMABLE", "Anybody can redeem it now", "Redeemed on"],
    ["BLOCKED", "refuses it", "Withdrawn on"],
  ])(
    "has the verified call data where it is %s, for a shell and with the explorer's page",
    async (state, text, step) => {
      const { address, withdrawal } = await read(state);
      const { chainId, to, data } = encodeWithdrawal(withdrawal);
      const { page } = await open(address);
      const panel = panelOf(page);
      await panel.locator(".command").waitFor();
      expect(await panel.locator(".answer > p").first().textContent()).toContain(text);
      const current = (await panel.locator('li[aria-current="step"] .name').textContent()) ?? "";
      expect(current.toLowerCase()).toContain(`${step} ${withdrawal.destinationChainSlug}`.toLowerCase());
      expect(await panel.locator('li[data-step="done"] time').count()).toBe(1);
      expect(await panel.locator(".command code").textContent()).toBe(
        `cast send --interactive --rpc-url "$RPC_URL" --chain ${chainId} ${to} ${data}`,
      );
      expect(await panel.locator("dd a").getAttribute("href")).toMatch(new RegExp(`^https://[a-z.]+/address/${to}$`));
      expect(await panel.locator("dd", { hasText: data }).count()).toBe(1);
      expect(await panel.locator(".warning").count()).toBe(state === "BLOCKED" ? 1 : 0);
    },
  );

  test.each([
    ["WAITING_FOR_COMMIT", "commitTransfers", "If no bonder pays", "Bonder fee"],
    ["WAITING_FOR_ATTESTATION", "Circle has to attest", "If nobody redeems it", "CCTP relayer fee"],
  ])("has no call data where it is %s, but who can do what", async (state, text, heading, fee) => {
    const { address } = await read(state);
    const { page } = await open(address);
    await panelOf(page).locator(".steps").waitFor();
    expect(await panelOf(page).locator(".answer > p").first().textContent()).toContain(text);
    expect(await panelOf(page).locator("h2").first().textContent()).toBe(heading);
    expect(await page.locator("#transfer-answer dt", { hasText: /fee/i }).textContent()).toContain(fee);
    expect(await panelOf(page).locator(".command").count()).toBe(0);
  });

  test("is shown without call data where the response does not fit", async () => {
    const { address, withdrawal } = await read("WITHDRAWABLE");
    const lie = { ...withdrawal, recipientAddress: `0x${"12".repeat(20)}` };
    const { page } = await open(address, {
      before: (browserPage) => browserPage.route("**/v1/withdrawal?**", (request) => request.fulfill({ json: lie })),
    });
    await panelOf(page).locator(".error-box").waitFor();
    expect(await panelOf(page).locator(".error-box").textContent()).toContain(
      "transferId is not the hash of the parts",
    );
    expect(await panelOf(page).locator(".command").count()).toBe(0);
  });

  test("is not asked for where a transfer was received", async () => {
    const received = inject("network").transfers.find((each) => each.expectedWithdrawalState === "RECEIVED");
    const { page } = await open(`/#transfer?id=${received?.transferId}`);
    await page.locator("#transfer-answer .details").waitFor();
    expect(await panelOf(page).isHidden()).toBe(true);
  });
});
