import { utils } from "ethers";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectChains, getContract, getLocalChain } from "../../devnet/chain/local-chains.js";
import { getTokenAddress } from "../../devnet/chain/tokens.js";
import { callContract, sendTransaction } from "../../devnet/chain/transactions.js";
import { type LocalNetwork, startLocalNetwork } from "../../devnet/network.js";
import type { components } from "../../gen/openapi.js";
import { openBrowserPage } from "../support/browser/browser-page.js";
import { browserPath, launchBrowser } from "../support/browser/launch-browser.js";
import { startGateway, type TestGateway } from "../support/service/in-process-gateway.js";

// Sends what the page tells its users to send. Uses its own local network, because that changes transfers.

type Status = components["schemas"]["GetTransferStatusResponse"];

const STRANGER = "0x00000000000000000000000000000000000a0002";
const erc20Abi = new utils.Interface(["function balanceOf(address) view returns (uint256)"]);

describe.skipIf(browserPath === undefined)("the transaction of the page (needs chromium)", () => {
  let network: LocalNetwork;
  let gateway: TestGateway;
  let browser: Browser;
  beforeAll(async () => {
    network = await startLocalNetwork();
    [gateway, browser] = await Promise.all([startGateway(network.environment), launchBrowser()]);
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
    await network?.stop();
  });

  test.each([
    // Hop's bridge pays hTokens and keeps no fee; Circle's contract pays what Hop's bridge has burnt, without its fee.
    ["withdraws", "hop-polygon-gnosis-first-leaf", () => getContract("HOP", "gnosis", "l2HopBridgeToken"), false],
    ["redeems", "usdc-optimism-ethereum", () => getTokenAddress("USDC", "ethereum"), true],
  ] as const)("%s a transfer: its recipient is paid, and nothing is left to do", async (_, name, getToken, isCctp) => {
    const chains = connectChains(network.chains);
    const seeded = network.transfers.find((each) => each.name === name);
    const { body } = await gateway.get(`/v1/transfer-status?transferHash=${seeded?.transactionHash}`);
    const { transferId, destinationChainSlug, recipientAddress, amount, bonderFee } = body as Status;
    const chain = getLocalChain(chains, destinationChainSlug);
    const readBalance = async () =>
      BigInt(await callContract(chain, getToken(), erc20Abi.encodeFunctionData("balanceOf", [recipientAddress])));
    const balance = await readBalance();

    const { page, consoleProblems, close } = await openBrowserPage(browser, gateway.url, `/#transfer?id=${transferId}`);
    const panel = page.locator("#transfer-withdrawal");
    const command = (await panel.locator(".command code").textContent()) ?? "";
    const [, chainId, to = "", data = ""] = / --chain (\d+) (0x\w+) (0x\w+)$/.exec(command) ?? [];
    expect(Number(chainId)).toBe(Number(await chain.rpc("eth_chainId")));
    await sendTransaction(chain, { from: STRANGER, to, data });

    expect((await readBalance()) - balance).toBe(BigInt(amount) - (isCctp ? BigInt(bonderFee) : 0n));
    await panel.waitFor({ state: "hidden", timeout: 120_000 });
    expect(consoleProblems).toEqual([]);
    await close();
  });
});
