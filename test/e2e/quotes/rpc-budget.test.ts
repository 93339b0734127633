import { expect, test } from "vitest";
import { useGateway } from "../../support/service/in-process-gateway.js";

const gateway = useGateway({ RPC_BUDGET: "20" });

test("a first quote and a status wait for their share of RPC_BUDGET", async () => {
  const quote = "/v1/quote?amount=25000000&token=USDT&fromChain=polygon&toChain=arbitrum&slippage=0.5";
  expect((await gateway.get(quote)).status).toBe(200);
  const status = await gateway.get(`/v1/transfer-status?transferId=0x${"ab".repeat(32)}`);
  expect(status).toMatchObject({ status: 404, body: { reason: "TRANSFER_NOT_FOUND" } });
});
