"""Prints the transaction that pays the recipient of a transfer that no bonder has paid. Any account can send it.

Needs no package. The Merkle proof or the message is verified, but not that the contract is Hop's or Circle's: compare its
address with theirs.
"""

import json
import sys
import urllib.request

MASK = (1 << 64) - 1


def rotate(lane, bits):
    bits %= 64
    return (lane << bits | lane >> (64 - bits)) & MASK


def permute(lanes):
    """Keccak-f[1600] (FIPS 202, 3.3) on lanes[x][y]."""
    constant = 1
    for _ in range(24):
        parity = [lanes[x][0] ^ lanes[x][1] ^ lanes[x][2] ^ lanes[x][3] ^ lanes[x][4] for x in range(5)]
        effect = [parity[x - 1] ^ rotate(parity[(x + 1) % 5], 1) for x in range(5)]
        lanes = [[lane ^ effect[x] for lane in lanes[x]] for x in range(5)]
        x, y, moved = 1, 0, lanes[1][0]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            moved, lanes[x][y] = lanes[x][y], rotate(moved, (step + 1) * (step + 2) // 2)
        for y in range(5):
            row = [lanes[x][y] for x in range(5)]
            for x in range(5):
                lanes[x][y] = row[x] ^ (~row[(x + 1) % 5] & row[(x + 2) % 5])
        for bit in range(7):
            constant = (constant << 1 ^ (constant >> 7) * 0x71) % 256
            if constant & 2:
                lanes[0][0] ^= 1 << ((1 << bit) - 1)
    return lanes


def keccak256(data):
    """Ethereum's hash: SHA3-256 with the padding before the standard, so hashlib does not have it."""
    rate = 136
    padded = bytearray(data + b"\1" + bytes(-(len(data) + 1) % rate))
    padded[-1] |= 0x80
    lanes = [[0] * 5 for _ in range(5)]
    for start in range(0, len(padded), rate):
        for place in range(rate // 8):
            offset = start + 8 * place
            lanes[place % 5][place // 5] ^= int.from_bytes(padded[offset : offset + 8], "little")
        lanes = permute(lanes)
    return b"".join(lanes[x][0].to_bytes(8, "little") for x in range(4))


def to_bytes(text):
    return bytes.fromhex(text[2:])


def word(value):
    """Encodes a number, as a decimal string too, or hex of at most 32 bytes."""
    if isinstance(value, str) and value.startswith("0x"):
        return to_bytes(value).rjust(32, b"\0")
    return int(value).to_bytes(32, "big")


def words(*values):
    return b"".join(map(word, values))


def require(is_right, fault):
    if not is_right:
        raise SystemExit(f"the withdrawal does not fit: {fault}")


def encode_withdraw(withdrawal):
    """Verifies a Merkle proof and encodes withdraw(...) of Hop's bridge."""
    proof = withdrawal["merkleProof"]
    parts = [withdrawal["recipientAddress"], withdrawal["amount"]]
    parts += [proof[name] for name in ("transferNonce", "bonderFee", "amountOutMin", "deadline")]
    index, siblings, total_leaves = proof["transferIdTreeIndex"], proof["siblings"], proof["totalLeaves"]

    node = keccak256(words(withdrawal["destinationChainId"], *parts))
    require(node == to_bytes(withdrawal["transferId"]), "the id is not the hash of its parts")
    require(0 <= index < total_leaves, "the index is outside the tree")
    require(len(siblings) == (total_leaves - 1).bit_length(), "the number of siblings")
    for height, sibling in enumerate(map(to_bytes, siblings)):
        node = keccak256(sibling + node if index >> height & 1 else node + sibling)
    require(node == to_bytes(proof["rootHash"]), "the root is not that of the siblings")

    parts += [proof["rootHash"], proof["transferRootTotalAmount"], index]
    offset = 32 * (len(parts) + 2)
    data = words(*parts, offset, total_leaves, len(siblings), *siblings)
    return proof["bridgeAddress"], bytes.fromhex("0f7aadb7") + data


def encode_receive_message(withdrawal):
    """Verifies a message of CCTP V1 and encodes receiveMessage(message, attestation) of Circle's MessageTransmitter."""
    message, attestation = (to_bytes(withdrawal["cctp"][name]) for name in ("message", "attestation"))
    require(len(message) == 248, "the message is not that of a burn")
    require(int.from_bytes(message[12:20], "big") == int(withdrawal["transferId"]), "the nonce of the message")
    require(message[152:184] == word(withdrawal["recipientAddress"]), "the recipient of the message")
    # The bonder fee has been deducted.
    require(int.from_bytes(message[184:216], "big") <= int(withdrawal["amount"]), "the amount of the message")

    heads, tail = b"", b""
    for value in (message, attestation):
        heads += word(64 + len(tail))
        tail += word(len(value)) + value + bytes(-len(value) % 32)
    return withdrawal["cctp"]["messageTransmitterAddress"], bytes.fromhex("57ecfd28") + heads + tail


def main(base_url, transfer_id):
    with urllib.request.urlopen(f"{base_url}/v1/withdrawal?transferId={transfer_id}", timeout=15) as response:
        withdrawal = json.load(response)
    require(withdrawal["transferId"] == transfer_id, "it is another transfer")
    print(f"{withdrawal['amount']} {withdrawal['token']} for {withdrawal['recipientAddress']}: {withdrawal['state']}")
    if "merkleProof" in withdrawal:
        to, data = encode_withdraw(withdrawal)
    elif "attestation" in withdrawal.get("cctp", {}):
        to, data = encode_receive_message(withdrawal)
    else:
        raise SystemExit("there is nothing to send")
    print(f"on chain {withdrawal['destinationChainId']} to {to}: 0x{data.hex()}")


main(*sys.argv[1:])
