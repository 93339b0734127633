import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectChains, getLocalChain, type LocalChains } from "../../devnet/chain/local-chains.js";
import { fundAccount } from "../../devnet/chain/tokens.js";
import { type LocalNetwork, startLocalNetwork } from "../../devnet/network.js";
import { deliverTransfer } from "../../devnet/transfer/deliver-transfer.js";
import { sendTransfer } from "../../devnet/transfer/send-transfer.js";
import { parseSentTransfers } from "../../devnet/transfer/sent-transfer.js";
import { openBrowserPage, setPageHidden } from "../support/browser/browser-page.js";
import { browserPath, launchBrowser } from "../support/browser/launch-browser.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";

const HOUR = 3_600;

// Uses its own local network, because it sends transfers.
describe.skipIf(browserPath === undefined)("the transfer view (needs chromium)", () => {
  let network: LocalNetwork;
  let chains: LocalChains;
  let gateway: TestGateway;
  let browser: Browser;
  beforeAll(async () => {
    [network, browser] = await Promise.all([startLocalNetwork(), launchBrowser()]);
    chains = connectChains(network.chains);
    gateway = await startGateway(network.environment);
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
    await network?.stop();
  });
  const open = (address: string, options?: Parameters<typeof openBrowserPage>[3]) =>
    openBrowserPage(browser, gateway.url, address, options);

  const findSeeded = (name: string) => {
    const transfer = network.transfers.find((seeded) => seeded.name === name);
    if (transfer === undefined) throw new Error(`there is no seeded transfer ${name}`);
    return transfer;
  };

  /** Sends 25 USDT from Polygon to Arbitrum. Returns the hash and a function that delivers the transfer. */
  async function send() {
    const [from = ""] = (await getLocalChain(chains, "polygon").rpc("eth_accounts")) as string[];
    const amount = 25_000_000n;
    await fundAccount(chains, "polygon", "USDT", from, amount);
    const deadline = Math.floor(Date.now() / 1000) + HOUR;
    const receipt = await sendTransfer(chains, {
      ...{ token: "USDT", source: "polygon", destination: "arbitrum", from, recipient: from, amount },
      ...{ bonderFee: 600_000n, amountOutMin: 24_000_000n, deadline },
      ...{ destinationAmountOutMin: 23_000_000n, destinationDeadline: deadline },
    });
    const [sent] = parseSentTransfers("polygon", receipt.logs);
    if (sent === undefined) throw new Error("the transaction sent no transfer");
    return { hash: receipt.transactionHash, deliver: () => deliverTransfer(chains, sent) };
  }

  test("polls a pending transfer until it is received", async () => {
    const sent = await send();
    const { page, consoleProblems, close } = await open("/#transfer");
    await page.getByLabel("Transaction hash or transfer id").fill(sent.hash);
    await page.keyboard.press("Enter");
    const state = page.locator("#transfer-answer .state");
    const announcement = page.locator("#transfer-announcement");
    await page.locator("#transfer-answer .state", { hasText: "Pending" }).waitFor();
    expect(await announcement.textContent()).toMatch(/^Pending: USDT from Polygon to Arbitrum/);
    await page.locator("#transfer-watching", { hasText: "Next update in" }).waitFor();

    const delivered = await sent.deliver();
    await page.locator("#transfer-answer .state", { hasText: "Received" }).waitFor();
    expect(await announcement.textContent()).toMatch(/^Received: USDT from Polygon to Arbitrum/);
    expect(await announcement.getAttribute("role")).toBe("status");
    expect(await state.count()).toBe(1);
    expect(await page.locator("#transfer-watching").textContent()).toBe("");
    const { body } = await gateway.get(`/v1/transfer-status?transferHash=${sent.hash}`);
    const status = body as { transferId: string; amount: string };
    const answer = (await page.locator("#transfer-answer").textContent()) ?? "";
    for (const value of [
      sent.hash,
      delivered?.transactionHash ?? "",
      status.transferId,
      status.amount,
      "0.6 USDT 600000",
    ]) {
      expect(answer).toContain(value);
    }
    expect(consoleProblems).toEqual([]);
    await close();
  });

  test("does not poll while the page is hidden", async () => {
    const requestedUrls: string[] = [];
    const { page, close } = await open(`/#transfer?of=${findSeeded("eth-base-polygon").transactionHash}`, {
      before: async (browserPage) => {
        browserPage.on("request", (request) => requestedUrls.push(request.url()));
      },
    });
    await page.locator("#transfer-answer .state", { hasText: "Pending" }).waitFor();
    await setPageHidden(page, true);
    const before = requestedUrls.length;
    // Longer than the first poll interval.
    await page.waitForTimeout(3_500);
    expect(requestedUrls.length).toBe(before);
    const copy = page.getByRole("button", { name: "Copy the curl command" });
    await copy.focus();
    await setPageHidden(page, false);
    await expect.poll(() => requestedUrls.length).toBeGreaterThan(before);
    await page.locator("#transfer-watching", { hasText: "Next update in" }).waitFor();
    // Rendering the same commands keeps the focus.
    expect(await copy.evaluate((button) => button === button.ownerDocument.activeElement)).toBe(true);
    await close();
  });

  test("falls back from a hash to a transfer id, and finds a CCTP transfer by its number", async () => {
    const { transferId } = findSeeded("matic-polygon-gnosis");
    const { page, close } = await open(`/#transfer?of=${transferId}`, { mayFail: /404/ });
    await page.locator("#transfer-answer .state").waitFor();
    expect(await page.locator("#transfer-terminal .command code").first().textContent()).toContain(
      `transferId=${transferId}`,
    );
    const cctp = network.transfers.find(({ kind }) => kind === "cctp");
    await page.getByLabel("Transaction hash or transfer id").fill(cctp?.transferId ?? "");
    await page.getByRole("button", { name: "Find" }).click();
    await page.locator("#transfer-answer .hash", { hasText: cctp?.transactionHash ?? "" }).waitFor();
    await close();
  });

  test("shows a deadline that is too large for a date", async () => {
    const { transactionHash } = findSeeded("usdt-polygon-arbitrum");
    const { page, close } = await open(`/#transfer?of=${transactionHash}`, {
      before: (browserPage) =>
        browserPage.route("**/v1/transfer-status?**", async (request) => {
          const response = await request.fetch();
          // The API returns this value for larger numbers, such as 2^256-1.
          const json = { ...(await response.json()), deadline: Number.MAX_SAFE_INTEGER };
          await request.fulfill({ response, json });
        }),
    });
    const deadline = page.locator('dt:has(code:text-is("deadline")) + dd');
    await deadline.waitFor();
    expect(await deadline.textContent()).toBe("Never 9007199254740991");
    await close();
  });

  test("shows that a transfer is unbondable", async () => {
    const unbondable = network.transfers.find(({ expectedState }) => expectedState === "UNBONDABLE");
    const { page, close } = await open(`/#transfer?of=${unbondable?.transactionHash}`);
    await page.locator("#transfer-answer .state", { hasText: "Unbondable" }).waitFor();
    await close();
  });

  test("links to the other transfers of the transaction", async () => {
    const hashes = network.transfers.map(({ transactionHash }) => transactionHash);
    const sharedHash = hashes.find((hash, index) => hashes.indexOf(hash) !== index);
    const [first, second] = network.transfers.filter(({ transactionHash }) => transactionHash === sharedHash);
    const { page, close } = await open(`/#transfer?of=${sharedHash}`);
    const id = page.locator('dt:has(code:text-is("transferId")) + dd');
    const others = page.locator('dt:has(code:text-is("otherTransferIds")) + dd a');
    await others.waitFor();
    expect([await id.textContent(), await others.textContent()]).toEqual([first?.transferId, second?.transferId]);
    await others.click();
    await expect.poll(() => id.textContent()).toBe(second?.transferId);
    await page.goBack();
    await expect.poll(() => id.textContent()).toBe(first?.transferId);
    await close();
  });

  test("shows the service's message for an unknown transfer and keeps polling", async () => {
    const unknown = `0x${"12".repeat(32)}`;
    const { page, close } = await open(`/#transfer?of=${unknown}`, { mayFail: /404/ });
    const { body } = await gateway.get(`/v1/transfer-status?transferId=${unknown}`);
    await page.locator("#transfer-answer .message", { hasText: (body as { message: string }).message }).waitFor();
    expect(await page.locator("#transfer-answer .reason").textContent()).toBe("HTTP 404 TRANSFER_NOT_FOUND");
    await page.locator("#transfer-watching", { hasText: "Next update in" }).waitFor();
    await close();
  });

  test("shows the error of a malformed hash at the field and stops polling", async () => {
    const { page, close } = await open("/#transfer?of=0x12", { mayFail: /400/ });
    const { body } = await gateway.get("/v1/transfer-status?transferHash=0x12");
    const { message } = body as { message: string };
    await page.locator("#transfer-of-error", { hasText: message }).waitFor();
    expect(await page.locator("#transfer-of").getAttribute("aria-invalid")).toBe("true");
    expect(await page.locator("#transfer-watching").textContent()).toBe("");
    await close();
  });
});
