import { utils } from "ethers";

/** Well-known private keys of the attesters that the local message transmitters trust, sorted by address. */
const attesterKeys = ["hop local network: attester 1", "hop local network: attester 2"]
  .map((name) => new utils.SigningKey(utils.id(name)))
  .sort((one, other) => (addressOf(one).toLowerCase() < addressOf(other).toLowerCase() ? -1 : 1));

export const attesters: readonly string[] = attesterKeys.map(addressOf);

/**
 * Signs the attestation of a CCTP message: every attester's signature of its hash, sorted by address.
 *
 * @param messageHash keccak256 of the message.
 */
export function signAttestation(messageHash: string): string {
  return utils.hexConcat(attesterKeys.map((key) => utils.joinSignature(key.signDigest(messageHash))));
}

function addressOf(key: utils.SigningKey): string {
  return utils.computeAddress(key.publicKey);
}
