import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { getLocalChain } from "../../devnet/chain/local-chains.js";
import { fundAccount } from "../../devnet/chain/tokens.js";
import { deliverTransfer } from "../../devnet/transfer/deliver-transfer.js";
import { sendTransfer } from "../../devnet/transfer/send-transfer.js";
import { parseSentTransfers } from "../../devnet/transfer/sent-transfer.js";
import { setPageHidden } from "../support/browser/browser-page.js";
import { browserPath } from "../support/browser/launch-browser.js";
import { usePages } from "../support/browser/use-pages.js";
import { startGatewayForTest } from "../support/service/in-process-gateway.js";
import { useOwnNetwork } from "../support/service/own-network.js";

const HOUR = 3_600;

interface Details {
  readonly receivedAmount: string;
  readonly source: { readonly blockNumber: number };
  readonly destination: { readonly blockNumber: number };
}

// Uses its own local network, because it sends transfers.
describe.skipIf(browserPath === undefined)("the transfer view (needs chromium)", () => {
  const { network, chains } = useOwnNetwork();
  const { gateway, open } = usePages(() => network.environment);

  const findSeeded = (name: string) => {
    const transfer = network.transfers.find((seeded) => seeded.name === name);
    if (transfer === undefined) throw new Error(`there is no seeded transfer ${name}`);
    return transfer;
  };

  /** Returns an order of 25 USDT from Polygon to Arbitrum, which its sender has. */
  async function prepare() {
    const [from = ""] = (await getLocalChain(chains, "polygon").rpc("eth_accounts")) as string[];
    const amount = 25_000_000n;
    await fundAccount(chains, "polygon", "USDT", from, amount);
    const deadline = Math.floor(Date.now() / 1000) + HOUR;
    return {
      ...{ token: "USDT", source: "polygon", destination: "arbitrum", from, recipient: from, amount },
      ...{ bonderFee: 600_000n, amountOutMin: 24_000_000n, deadline },
      ...{ destinationAmountOutMin: 23_000_000n, destinationDeadline: deadline },
    };
  }

  /** Sends the order. Returns the hash and a function that delivers the transfer. */
  async function send() {
    const receipt = await sendTransfer(chains, await prepare());
    const [sent] = parseSentTransfers("polygon", receipt.logs);
    if (sent === undefined) throw new Error("the transaction sent no transfer");
    return { hash: receipt.transactionHash, deliver: () => deliverTransfer(chains, sent) };
  }

  /** Lets blocks be final. */
  const finalize = (...slugs: readonly string[]) =>
    Promise.all(slugs.map((slug) => getLocalChain(chains, slug).rpc("anvil_mine", ["0x46"])));
  const waitForStream = (page: Page, state: string) =>
    page.locator(`#transfer-stream [data-stream="${state}"]`).waitFor();
  const waitForState = (page: Page, label: string) =>
    page.locator("#transfer-answer .state", { hasText: label }).waitFor();

  test("follows a pending transfer without reloading until both blocks are final", async () => {
    const sent = await send();
    const { page } = await open("/#transfer");
    const requested: string[] = [];
    page.on("request", (request) => {
      const { pathname } = new URL(request.url());
      if (pathname.startsWith("/v1/")) requested.push(pathname);
    });
    await page.getByLabel("Transaction hash or transfer id").fill(sent.hash);
    await page.keyboard.press("Enter");
    const announcement = page.locator("#transfer-announcement");
    await waitForState(page, "Pending");
    expect(await announcement.textContent()).toMatch(/^Pending: USDT from Polygon to Arbitrum/);
    expect(await page.locator("#transfer-answer .meaning").textContent()).toContain("waits for a bonder");
    await waitForStream(page, "live");

    const current = page.locator("#transfer-answer .timeline [aria-current=step]");
    expect(await current.textContent()).toMatch(/Waiting for a bonder.*A bonder pays it out/);

    const delivered = await sent.deliver();
    await waitForState(page, "Received");
    expect(await current.count()).toBe(0);
    await expect.poll(() => announcement.textContent()).toMatch(/^Received: USDT from Polygon to Arbitrum/);
    expect(await announcement.getAttribute("role")).toBe("status");
    expect(await page.locator("#transfer-answer .state").count()).toBe(1);

    await finalize("polygon", "arbitrum");
    await waitForStream(page, "ended");
    expect(await page.locator("#transfer-answer .finality").allTextContents()).toEqual(["final", "final"]);
    // The first stream watches the text as a hash and as an id, the second as what it is.
    expect(requested).toEqual(["/v1/transfers:watch", "/v1/transfers:watch"]);
    const { body } = await gateway.get(`/v1/transfer-status?transferHash=${sent.hash}&view=FULL`);
    const status = body as { transferId: string; amount: string; details: Details };
    const links = page.locator("#transfer-answer .timeline a");
    expect(await Promise.all((await links.all()).map((link) => link.getAttribute("href")))).toEqual([
      `https://polygonscan.com/tx/${sent.hash}`,
      `https://arbiscan.io/tx/${delivered?.transactionHash}`,
    ]);
    const answer = (await page.locator("#transfer-answer").textContent()) ?? "";
    for (const value of [
      ...[sent.hash, delivered?.transactionHash ?? "", status.transferId, status.amount, "0.6 USDT 600000"],
      ...[status.details.receivedAmount, status.details.source.blockNumber.toLocaleString("en")],
      status.details.destination.blockNumber.toLocaleString("en"),
    ]) {
      expect(answer).toContain(value);
    }
  });

  test("resumes after the gateway was restarted, and says so meanwhile", async () => {
    const sent = await send();
    const first = await startGatewayForTest(network.environment);
    const { page } = await open(`/#transfer?of=${sent.hash}`, { mayFail: /ERR_|503/ }, first);
    await waitForState(page, "Pending");
    await waitForStream(page, "live");
    await page.evaluate("window.isSamePage = true");
    const announced = await page.locator("#transfer-announcement").textContent();

    await first.stop();
    await waitForStream(page, "lost");
    expect(await page.locator("#transfer-stream").textContent()).toContain("may be outdated");
    expect(await page.locator("#transfer-announcement").textContent()).toBe(announced);
    await sent.deliver();
    const resumed = page.waitForRequest((request) => request.url().includes("transfers:watch"));
    await startGatewayForTest({ ...network.environment, PORT: new URL(first.url).port });
    expect(await (await resumed).headerValue("last-event-id")).toMatch(/./);
    await waitForState(page, "Received");
    await waitForStream(page, "live");
    expect(await page.evaluate("window.isSamePage")).toBe(true);
  });

  test("shows what a status request says where no further stream is accepted, and offers another attempt", async () => {
    const limited = await startGatewayForTest({ ...network.environment, WATCH_MAX_PER_CALLER: "1" });
    const address = `/#transfer?id=${findSeeded("eth-base-polygon").transferId}`;
    const first = await open(address, {}, limited);
    await waitForStream(first.page, "live");
    const second = await open(address, { mayFail: /429/ }, limited);
    await waitForStream(second.page, "refused");
    await waitForState(second.page, "Pending");
    expect(await second.page.locator("#transfer-stream").textContent()).toContain("may be outdated");
    await first.close();
    // The gateway notices that the first page is closed.
    await expect
      .poll(async () => {
        await second.page
          .locator("#transfer-stream button")
          .click({ timeout: 1_000 })
          .catch(() => {});
        await second.page.locator("#transfer-stream :is([data-stream=live], [data-stream=refused])").waitFor();
        return second.page.locator("#transfer-stream [data-stream]").getAttribute("data-stream");
      })
      .toBe("live");
  });

  test("has no stream while the page is hidden", async () => {
    const { page } = await open(`/#transfer?id=${findSeeded("eth-base-polygon").transferId}`);
    await waitForState(page, "Pending");
    await waitForStream(page, "live");
    const closed = page.waitForEvent("requestfailed", (request) => request.url().includes("transfers:watch"));
    await setPageHidden(page, true);
    await closed;
    const copy = page.getByRole("button", { name: "Copy the curl command" });
    await copy.focus();
    const opened = page.waitForRequest((request) => request.url().includes("transfers:watch"));
    await setPageHidden(page, false);
    await opened;
    await waitForStream(page, "live");
    expect(await copy.evaluate((button) => button === button.ownerDocument.activeElement)).toBe(true);
  });

  test("shows a transfer by itself that was not known before", async () => {
    const polygon = getLocalChain(chains, "polygon");
    const order = await prepare();
    const snapshot = await polygon.rpc("evm_snapshot");
    const { transactionHash } = await sendTransfer(chains, order);
    await polygon.rpc("evm_revert", [snapshot]);
    await finalize("polygon");
    const { page } = await open(`/#transfer?of=${transactionHash}`);
    await page.locator("#transfer-answer .empty", { hasText: "is known yet" }).waitFor();
    await waitForStream(page, "live");
    // With the same nonce it is the same transaction.
    expect((await sendTransfer(chains, order)).transactionHash).toBe(transactionHash);
    await waitForState(page, "Pending");
  });

  test("copies the link to a transfer", async () => {
    const address = `/#transfer?id=${findSeeded("eth-base-polygon").transferId}`;
    const { page } = await open(address, { permissions: ["clipboard-read", "clipboard-write"] });
    const copy = page.getByRole("button", { name: "Copy link" });
    await copy.click();
    await page.locator("#transfer-announcement", { hasText: "The link was copied." }).waitFor();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(`${gateway.url}${address}`);
    await page.getByRole("link", { name: "Account" }).click();
    await page.goto(`${gateway.url}/#transfer`);
    await page.locator("#transfer-answer .empty").waitFor();
    expect(await copy.isVisible()).toBe(false);
  });

  test("takes a text for a hash or a transfer id, and finds a CCTP transfer by its number", async () => {
    const { transferId } = findSeeded("matic-polygon-gnosis");
    const { page } = await open(`/#transfer?of=${transferId}`);
    await page.locator("#transfer-answer .state").waitFor();
    expect(await page.locator("#transfer-terminal .command code").first().textContent()).toContain(
      `transferId=${transferId}`,
    );
    const cctp = network.transfers.find(({ kind }) => kind === "cctp");
    await page.getByLabel("Transaction hash or transfer id").fill(cctp?.transferId ?? "");
    await page.getByRole("button", { name: "Find" }).click();
    await page.locator("#transfer-answer .hash", { hasText: cctp?.transactionHash ?? "" }).waitFor();
  });

  test("shows a deadline that is too large for a date", async () => {
    const { transactionHash } = findSeeded("usdt-polygon-arbitrum");
    const { body } = await gateway.get(`/v1/transfer-status?transferHash=${transactionHash}`);
    // The API returns this value for larger numbers, such as 2^256-1.
    const data = JSON.stringify({ ...(body as object), deadline: Number.MAX_SAFE_INTEGER });
    const events = `event: transfer\nid: 1\ndata: ${data}\n\nevent: end\nid: 2\ndata: {}\n\n`;
    const { page } = await open(`/#transfer?of=${transactionHash}`, {
      before: (browserPage) =>
        browserPage.route("**/v1/transfers:watch?**", (request) =>
          request.fulfill({ contentType: "text/event-stream", body: events }),
        ),
    });
    const deadline = page.locator('dt:has(code:text-is("deadline")) + dd');
    await deadline.waitFor();
    expect(await deadline.textContent()).toBe("Never 9007199254740991");
  });

  test("shows that a transfer is unbondable", async () => {
    const unbondable = network.transfers.find(({ expectedState }) => expectedState === "UNBONDABLE");
    const { page } = await open(`/#transfer?of=${unbondable?.transactionHash}`);
    await page.locator("#transfer-answer .state", { hasText: "Unbondable" }).waitFor();
  });

  test("links to the other transfers of the transaction", async () => {
    const hashes = network.transfers.map(({ transactionHash }) => transactionHash);
    const sharedHash = hashes.find((hash, index) => hashes.indexOf(hash) !== index);
    const [first, second] = network.transfers.filter(({ transactionHash }) => transactionHash === sharedHash);
    const { page } = await open(`/#transfer?of=${sharedHash}`);
    const id = page.locator('dt:has(code:text-is("transferId")) + dd');
    const others = page.locator('dt:has(code:text-is("otherTransferIds")) + dd a');
    await others.waitFor();
    expect([await id.textContent(), await others.textContent()]).toEqual([first?.transferId, second?.transferId]);
    await others.click();
    await expect.poll(() => id.textContent()).toBe(second?.transferId);
    await page.goBack();
    await expect.poll(() => id.textContent()).toBe(first?.transferId);
  });

  test("says that no transfer was found once the gateway has stopped looking", async () => {
    const unknown = `0x${"12".repeat(32)}`;
    const events = ["transferId", "transferHash"].map(
      (name) => `event: unknown\nid: 1\ndata: ${JSON.stringify({ [name]: unknown, isFinal: true })}\n\n`,
    );
    const { page } = await open(`/#transfer?of=${unknown}`, {
      before: (browserPage) =>
        browserPage.route("**/v1/transfers:watch?**", (request) =>
          request.fulfill({
            contentType: "text/event-stream",
            body: `${events.join("")}event: end\nid: 2\ndata: {}\n\n`,
          }),
        ),
    });
    await page.locator("#transfer-answer .empty", { hasText: "No transfer has this hash or id" }).waitFor();
    await page.locator("#transfer-answer").getByRole("button", { name: "Try again" }).waitFor();
    await expect.poll(() => page.locator("#transfer-stream").textContent()).toBe("");
  });

  test("shows the error of a malformed hash at the field", async () => {
    const { page } = await open("/#transfer?of=0x12", { mayFail: /400/ });
    const { body } = await gateway.get("/v1/transfer-status?transferHash=0x12");
    const { message } = body as { message: string };
    await page.locator("#transfer-of-error", { hasText: message }).waitFor();
    expect(await page.locator("#transfer-of").getAttribute("aria-invalid")).toBe("true");
    await expect.poll(() => page.locator("#transfer-stream").textContent()).toBe("");
  });
});
