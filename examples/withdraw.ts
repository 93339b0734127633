// Prints the transaction that pays the recipient of a transfer that no bonder has paid. Any account can send it.
import { createBridgeClient, encodeWithdrawal, GetWithdrawalResponse_State as State } from "hop-gateway-client";

const [, , baseUrl = "http://127.0.0.1:8000", transferId = ""] = process.argv;

const withdrawal = await createBridgeClient(baseUrl).getWithdrawal({ transferId });
// A right answer about another transfer would pay another recipient.
if (withdrawal.transferId !== transferId) throw new Error(`this is the transfer ${withdrawal.transferId}`);
const { amount, token, recipientAddress, state, proof } = withdrawal;
console.log(`${amount} ${token} for ${recipientAddress}: ${State[state]}`);

if (proof.case === undefined || (proof.case === "cctp" && proof.value.attestation === undefined)) {
  console.log("there is nothing to send");
} else {
  // Verifies the answer first, and throws if it does not fit.
  const { chainId, to, data } = encodeWithdrawal(withdrawal);
  console.log(`on chain ${chainId} to ${to}: ${data}`);
}
