// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title The byte layouts of CCTP version 1: a message, and the burn message that is its body.
library CctpMessage {
    uint32 internal constant VERSION = 0;
    uint256 private constant BODY_AT = 116;
    uint256 private constant BURN_BODY_LENGTH = 132;

    struct Message {
        uint32 version;
        uint32 sourceDomain;
        uint32 destinationDomain;
        uint64 nonce;
        bytes32 sender;
        bytes32 recipient;
        bytes32 destinationCaller;
    }

    struct Burn {
        bytes32 burnToken;
        bytes32 mintRecipient;
        uint256 amount;
        bytes32 sender;
    }

    function pack(Message memory message, bytes memory body) internal pure returns (bytes memory) {
        return abi.encodePacked(
            message.version,
            message.sourceDomain,
            message.destinationDomain,
            message.nonce,
            message.sender,
            message.recipient,
            message.destinationCaller,
            body
        );
    }

    function unpack(bytes calldata data) internal pure returns (Message memory message, bytes calldata body) {
        require(data.length >= BODY_AT, "cctp: message too short");
        message = Message({
            version: uint32(bytes4(data[0:4])),
            sourceDomain: uint32(bytes4(data[4:8])),
            destinationDomain: uint32(bytes4(data[8:12])),
            nonce: uint64(bytes8(data[12:20])),
            sender: bytes32(data[20:52]),
            recipient: bytes32(data[52:84]),
            destinationCaller: bytes32(data[84:116])
        });
        body = data[BODY_AT:];
    }

    function packBurn(Burn memory burn) internal pure returns (bytes memory) {
        return abi.encodePacked(VERSION, burn.burnToken, burn.mintRecipient, burn.amount, burn.sender);
    }

    function unpackBurn(bytes calldata body) internal pure returns (Burn memory) {
        require(body.length == BURN_BODY_LENGTH && uint32(bytes4(body[0:4])) == VERSION, "cctp: not a burn message");
        return Burn(bytes32(body[4:36]), bytes32(body[36:68]), uint256(bytes32(body[68:100])), bytes32(body[100:132]));
    }

    function toBytes32(address account) internal pure returns (bytes32) {
        return bytes32(uint256(uint160(account)));
    }

    function toAddress(bytes32 word) internal pure returns (address) {
        return address(uint160(uint256(word)));
    }
}
