// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {CctpMessage} from "./CctpMessage.sol";

interface IMessageHandler {
    function handleReceiveMessage(uint32 sourceDomain, bytes32 sender, bytes calldata body) external returns (bool);
}

/// @title Sends CCTP messages and receives those signed by every attester.
contract MessageTransmitter {
    uint256 private constant SIGNATURE_LENGTH = 65;

    uint32 public localDomain;
    uint32 public version;
    uint64 public nextAvailableNonce;
    /// @notice 1 for keccak256(abi.encodePacked(uint32 sourceDomain, uint64 nonce)) once that message was received.
    mapping(bytes32 => uint256) public usedNonces;
    address[] private attesters;

    event MessageSent(bytes message);
    event MessageReceived(
        address indexed caller,
        uint32 sourceDomain,
        uint64 indexed nonce,
        bytes32 sender,
        bytes messageBody
    );

    function initialize(uint32 localDomain_, uint64 firstNonce, address[] calldata attesters_) external {
        require(attesters.length == 0, "cctp: already initialised");
        localDomain = localDomain_;
        version = CctpMessage.VERSION;
        nextAvailableNonce = firstNonce;
        attesters = attesters_;
    }

    function sendMessage(uint32 destinationDomain, bytes32 recipient, bytes calldata messageBody)
        external
        returns (uint64)
    {
        return sendMessageWithCaller(destinationDomain, recipient, bytes32(0), messageBody);
    }

    function sendMessageWithCaller(
        uint32 destinationDomain,
        bytes32 recipient,
        bytes32 destinationCaller,
        bytes calldata messageBody
    ) public returns (uint64 nonce) {
        require(recipient != bytes32(0), "cctp: no recipient");
        nonce = nextAvailableNonce++;
        CctpMessage.Message memory message = CctpMessage.Message({
            version: version,
            sourceDomain: localDomain,
            destinationDomain: destinationDomain,
            nonce: nonce,
            sender: CctpMessage.toBytes32(msg.sender),
            recipient: recipient,
            destinationCaller: destinationCaller
        });
        emit MessageSent(CctpMessage.pack(message, messageBody));
    }

    /// @param attestation One 65-byte signature of keccak256(message) per attester, sorted by address.
    function receiveMessage(bytes calldata message, bytes calldata attestation) external returns (bool) {
        _requireAttested(keccak256(message), attestation);
        (CctpMessage.Message memory parts, bytes calldata body) = CctpMessage.unpack(message);
        require(parts.destinationDomain == localDomain, "Invalid destination domain");
        require(
            parts.destinationCaller == bytes32(0) || parts.destinationCaller == CctpMessage.toBytes32(msg.sender),
            "Invalid caller for message"
        );
        require(parts.version == version, "Invalid message version");
        bytes32 key = keccak256(abi.encodePacked(parts.sourceDomain, parts.nonce));
        require(usedNonces[key] == 0, "Nonce already used");
        usedNonces[key] = 1;

        IMessageHandler handler = IMessageHandler(CctpMessage.toAddress(parts.recipient));
        require(handler.handleReceiveMessage(parts.sourceDomain, parts.sender, body), "handleReceiveMessage() failed");
        emit MessageReceived(msg.sender, parts.sourceDomain, parts.nonce, parts.sender, body);
        return true;
    }

    function isEnabledAttester(address attester) public view returns (bool) {
        for (uint256 i = 0; i < attesters.length; i++) if (attesters[i] == attester) return true;
        return false;
    }

    function _requireAttested(bytes32 digest, bytes calldata attestation) private view {
        require(attestation.length == SIGNATURE_LENGTH * attesters.length, "Invalid attestation length");
        address last = address(0);
        for (uint256 i = 0; i < attesters.length; i++) {
            bytes calldata signature = attestation[i * SIGNATURE_LENGTH:(i + 1) * SIGNATURE_LENGTH];
            address signer =
                ecrecover(digest, uint8(signature[64]), bytes32(signature[0:32]), bytes32(signature[32:64]));
            require(signer != address(0), "ECDSA: invalid signature");
            require(signer > last, "Invalid signature order or dupe");
            require(isEnabledAttester(signer), "Invalid signature: not attester");
            last = signer;
        }
    }
}
