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

// The chains are the test's own: something is sent on them.
describe.skipIf(browserPath === undefined)("a transfer on the page (needs chromium)", () => {
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

  const seeded = (name: string) => {
    const found = network.transfers.find((transfer) => transfer.name === name);
    if (found === undefined) throw new Error(`${name} is not seeded`);
    return found;
  };

  /** Sends 25 USDT from polygon to arbitrum, and gives a function that delivers them. */
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
    if (sent === undefined) throw new Error("nothing was sent");
    return { hash: receipt.transactionHash, deliver: () => deliverTransfer(chains, sent) };
  }

  test("is watched from pending until it is received, and then no longer", async () => {
    const sent = await send();
    const { page, consoleProblems, close } = await open("/#transfer");
    await page.getByLabel("Transaction hash or transfer id").fill(sent.hash);
    await page.keyboard.press("Enter");
    const state = page.locator("#transfer-answer .state");
    const said = page.locator("#transfer-said");
    await page.locator("#transfer-answer .state", { hasText: "Pending" }).waitFor();
    expect(await said.textContent()).toMatch(/^Pending: USDT from Polygon to Arbitrum/);
    await page.locator("#transfer-watching", { hasText: "looks again in" }).waitFor();

    const delivered = await sent.deliver();
    await page.locator("#transfer-answer .state", { hasText: "Received" }).waitFor();
    expect(await said.textContent()).toMatch(/^Received: USDT from Polygon to Arbitrum/);
    expect(await said.getAttribute("role")).toBe("status");
    expect(await state.count()).toBe(1);
    expect(await page.locator("#transfer-watching").textContent()).toBe("");
    const { body } = await gateway.get(`/v1/transfer-status?transferHash=${sent.hash}`);
    const status = body as { transferId: string; amount: string };
    const answer = (await page.locator("#transfer-answer").textContent()) ?? "";
    for (const known of [
      sent.hash,
      delivered?.transactionHash ?? "",
      status.transferId,
      status.amount,
      "0.6 USDT 600000",
    ]) {
      expect(answer).toContain(known);
    }
    expect(consoleProblems).toEqual([]);
    await close();
  });

  test("is not asked for while nobody sees the page", async () => {
    const asked: string[] = [];
    const { page, close } = await open(`/#transfer?of=${seeded("eth-base-polygon").transactionHash}`, {
      before: async (it) => {
        it.on("request", (request) => asked.push(request.url()));
      },
    });
    await page.locator("#transfer-answer .state", { hasText: "Pending" }).waitFor();
    await setPageHidden(page, true);
    const before = asked.length;
    // Longer than the first pause.
    await page.waitForTimeout(3_500);
    expect(asked.length).toBe(before);
    const copy = page.getByRole("button", { name: "Copy the curl command" });
    await copy.focus();
    await setPageHidden(page, false);
    await expect.poll(() => asked.length).toBeGreaterThan(before);
    await page.locator("#transfer-watching", { hasText: "looks again in" }).waitFor();
    // The same is shown again: what has the focus stays.
    expect(await copy.evaluate((button) => button === button.ownerDocument.activeElement)).toBe(true);
    await close();
  });

  test("is found by its id where no transaction has that hash, and by the number of a CCTP transfer", async () => {
    const { transferId } = seeded("matic-polygon-gnosis");
    const { page, close } = await open(`/#transfer?of=${transferId}`, { mayFail: /404/ });
    await page.locator("#transfer-answer .state").waitFor();
    expect(await page.locator("#transfer-terminal .command code").first().textContent()).toContain(
      `transferId=${transferId}`,
    );
    const cctp = network.transfers.find(({ kind }) => kind === "cctp");
    await page.getByLabel("Transaction hash or transfer id").fill(cctp?.transferId ?? "");
    await page.getByRole("button", { name: "Look" }).click();
    await page.locator("#transfer-answer .hash", { hasText: cctp?.transactionHash ?? "" }).waitFor();
    await close();
  });

  test("whose deadline is no date is told all the same", async () => {
    const { transactionHash } = seeded("usdt-polygon-arbitrum");
    const { page, close } = await open(`/#transfer?of=${transactionHash}`, {
      before: (it) =>
        it.route("**/v1/transfer-status?**", async (request) => {
          const response = await request.fetch();
          // As the interface has what is beyond it, such as 2^256-1.
          const json = { ...(await response.json()), deadline: Number.MAX_SAFE_INTEGER };
          await request.fulfill({ response, json });
        }),
    });
    const deadline = page.locator('dt:has(code:text-is("deadline")) + dd');
    await deadline.waitFor();
    expect(await deadline.textContent()).toBe("Never 9007199254740991");
    await close();
  });

  test("that no bonder can deliver says so", async () => {
    const unbondable = network.transfers.find(({ expectedState }) => expectedState === "UNBONDABLE");
    const { page, close } = await open(`/#transfer?of=${unbondable?.transactionHash}`);
    await page.locator("#transfer-answer .state", { hasText: "Unbondable" }).waitFor();
    await close();
  });

  test("leads to the others of its transaction", async () => {
    const hashes = network.transfers.map(({ transactionHash }) => transactionHash);
    const twice = hashes.find((hash, index) => hashes.indexOf(hash) !== index);
    const [first, second] = network.transfers.filter(({ transactionHash }) => transactionHash === twice);
    const { page, close } = await open(`/#transfer?of=${twice}`);
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

  test("that is not known is told to be none, in the service's words, and looked for again", async () => {
    const unknown = `0x${"12".repeat(32)}`;
    const { page, close } = await open(`/#transfer?of=${unknown}`, { mayFail: /404/ });
    const { body } = await gateway.get(`/v1/transfer-status?transferId=${unknown}`);
    await page.locator("#transfer-answer .message", { hasText: (body as { message: string }).message }).waitFor();
    expect(await page.locator("#transfer-answer .reason").textContent()).toBe("HTTP 404 TRANSFER_NOT_FOUND");
    await page.locator("#transfer-watching", { hasText: "looks again in" }).waitFor();
    await close();
  });

  test("that is written wrongly is refused at its field, and not asked for again", async () => {
    const { page, close } = await open("/#transfer?of=0x12", { mayFail: /400/ });
    const { body } = await gateway.get("/v1/transfer-status?transferHash=0x12");
    const { message } = body as { message: string };
    await page.locator("#transfer-of-problem", { hasText: message }).waitFor();
    expect(await page.locator("#transfer-of").getAttribute("aria-invalid")).toBe("true");
    expect(await page.locator("#transfer-watching").textContent()).toBe("");
    await close();
  });
});
