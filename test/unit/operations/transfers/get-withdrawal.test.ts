import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  GetWithdrawalRequestSchema,
  type GetWithdrawalResponse,
  GetWithdrawalResponse_State as State,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { createGetWithdrawal } from "../../../../src/operations/transfers/get-withdrawal.js";
import type { LookupResult } from "../../../../src/transfers/sources/transfer-source.js";
import type { MerkleProof, Withdrawal } from "../../../../src/transfers/withdrawals/withdrawal.js";
import { createChainAccess, createStatus, repeatedByteHash } from "../../../support/stubs/transfer-fixtures.js";
import { createRecordingContext } from "../call-context.js";

const id = repeatedByteHash("1a");
const OBSERVED_AT_MS = 1_700_000_100_000;

async function call(
  status: LookupResult,
  withdrawal: Withdrawal = { state: "RECEIVED" },
  request: MessageInitShape<typeof GetWithdrawalRequestSchema> = { transferId: id },
) {
  const operation = createGetWithdrawal({
    chains: {
      forNetwork: () => createChainAccess([]),
      withCustomEndpoints: (_, custom, work) => work(createChainAccess([], [...custom.keys()])),
    },
    statusCache: { find: () => status },
    withdrawals: { find: async () => withdrawal },
    now: () => OBSERVED_AT_MS + 500,
  });
  const { context, recorded } = createRecordingContext();
  const response: GetWithdrawalResponse = await operation(create(GetWithdrawalRequestSchema, request), context);
  return { response, caching: recorded.cache, warnings: recorded.warnings };
}

test("a transfer that was received needs nothing", async () => {
  const { response, caching } = await call(createStatus({ otherTransferIds: [repeatedByteHash("9f")] }));
  expect(response).toEqual({
    $typeName: "hop.bridge.v1.GetWithdrawalResponse",
    transferId: id,
    transactionHash: repeatedByteHash("2b"),
    token: "ETH",
    sourceChainSlug: "optimism",
    sourceChainId: 10,
    destinationChainSlug: "arbitrum",
    destinationChainId: 42161,
    recipientAddress: `0x${"d2".repeat(20)}`,
    amount: "2500000000000000000",
    state: State.RECEIVED,
    receivedTransactionHash: repeatedByteHash("3c"),
    otherTransferIds: [repeatedByteHash("9f")],
    proof: { case: undefined },
  });
  expect(caching).toEqual([{ ageSeconds: 0.5, maxAgeSeconds: 86_400 }]);
});

test("a delivery that is not final may be cached for a block", async () => {
  expect((await call(createStatus({ isFinal: false }))).caching).toEqual([{ ageSeconds: 0.5, maxAgeSeconds: 1 }]);
});

test("nothing that a caller's endpoint says may be cached", async () => {
  const rpcUrl = { optimism: "https://rpc.example" };
  expect((await call(createStatus(), undefined, { transferId: id, rpcUrl })).caching).toEqual(["private"]);
});

test("a proof is returned as the contract takes it", async () => {
  const proof: MerkleProof = {
    ...{ bridge: `0x${"ab".repeat(20)}`, transferNonce: repeatedByteHash("4d") },
    ...{ rootHash: repeatedByteHash("5e"), totalAmount: 2n ** 200n, treeIndex: 1, siblings: [id], totalLeaves: 2 },
    ...{ kind: "merkle", commitTransactionHash: repeatedByteHash("6f") },
  };
  const status = createStatus({ delivery: undefined, isFinal: false });
  const warning = "refused";
  const { response, caching, warnings } = await call(status, { state: "BLOCKED", availableAt: 5, proof, warning });
  expect(response).toMatchObject({ state: State.BLOCKED, receivedTransactionHash: "", availableAt: 5n });
  expect(response.proof).toEqual({
    case: "merkleProof",
    value: {
      $typeName: "hop.bridge.v1.MerkleProof",
      bridgeAddress: proof.bridge,
      transferNonce: proof.transferNonce,
      bonderFee: "250000000000000000",
      amountOutMin: "2490000000000000000",
      deadline: "1700600000",
      rootHash: proof.rootHash,
      transferRootTotalAmount: String(2n ** 200n),
      transferIdTreeIndex: 1,
      siblings: [id],
      totalLeaves: 2,
      commitTransactionHash: proof.commitTransactionHash,
    },
  });
  expect(warnings).toEqual(["refused"]);
  expect(caching).toEqual([{ ageSeconds: 0.5, maxAgeSeconds: 1 }]);
});

test("a message without an attestation has none, not an empty one", async () => {
  const proof = { kind: "cctp", transmitter: "0x1", message: "0x2", attestation: undefined } as const;
  const { response } = await call(createStatus({ delivery: undefined }), { state: "WAITING_FOR_ATTESTATION", proof });
  expect(response.proof).toEqual({
    case: "cctp",
    value: { $typeName: "hop.bridge.v1.CctpMessage", messageTransmitterAddress: "0x1", message: "0x2" },
  });
});

test("an unknown transfer is not found", async () => {
  await expect(call(undefined)).rejects.toMatchObject({ reason: "TRANSFER_NOT_FOUND" });
});

test("neither ID nor hash is a missing parameter", async () => {
  await expect(call(createStatus(), undefined, {})).rejects.toMatchObject({
    reason: "MISSING_PARAMETER",
    field: "transferId",
  });
});
