// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Token} from "../tokens/Token.sol";
import {CctpMessage} from "./CctpMessage.sol";
import {IMessageHandler, MessageTransmitter} from "./MessageTransmitter.sol";
import {TokenMinter} from "./TokenMinter.sol";

/// @title Burns USDC on this chain for minting on another, and mints what was burnt on others.
contract TokenMessenger is IMessageHandler {
    struct RemoteMessenger {
        uint32 domain;
        bytes32 messenger;
    }

    MessageTransmitter public localMessageTransmitter;
    TokenMinter public localMinter;
    uint32 public messageBodyVersion;
    mapping(uint32 => bytes32) public remoteTokenMessengers;

    event DepositForBurn(
        uint64 indexed nonce,
        address indexed burnToken,
        uint256 amount,
        address indexed depositor,
        bytes32 mintRecipient,
        uint32 destinationDomain,
        bytes32 destinationTokenMessenger,
        bytes32 destinationCaller
    );
    event MintAndWithdraw(address indexed mintRecipient, uint256 amount, address indexed mintToken);

    function initialize(MessageTransmitter transmitter, TokenMinter minter, RemoteMessenger[] calldata remotes) external {
        require(address(localMinter) == address(0), "cctp: already initialised");
        localMessageTransmitter = transmitter;
        localMinter = minter;
        messageBodyVersion = CctpMessage.VERSION;
        for (uint256 i = 0; i < remotes.length; i++) remoteTokenMessengers[remotes[i].domain] = remotes[i].messenger;
    }

    function depositForBurn(uint256 amount, uint32 destinationDomain, bytes32 mintRecipient, address burnToken)
        external
        returns (uint64 nonce)
    {
        bytes32 remote = remoteTokenMessengers[destinationDomain];
        require(amount > 0, "cctp: nothing to burn");
        require(mintRecipient != bytes32(0), "cctp: no recipient");
        require(remote != bytes32(0), "cctp: no messenger on that domain");
        Token(burnToken).transferFrom(msg.sender, address(localMinter), amount);
        localMinter.burn(burnToken, amount);
        bytes32 token = CctpMessage.toBytes32(burnToken);
        bytes memory body = CctpMessage.packBurn(
            CctpMessage.Burn(token, mintRecipient, amount, CctpMessage.toBytes32(msg.sender))
        );
        nonce = localMessageTransmitter.sendMessage(destinationDomain, remote, body);
        emit DepositForBurn(
            nonce, burnToken, amount, msg.sender, mintRecipient, destinationDomain, remote, bytes32(0)
        );
    }

    function handleReceiveMessage(uint32 sourceDomain, bytes32 sender, bytes calldata body) external returns (bool) {
        require(msg.sender == address(localMessageTransmitter), "cctp: not the transmitter");
        require(sender != bytes32(0) && sender == remoteTokenMessengers[sourceDomain], "cctp: unknown sender");
        CctpMessage.Burn memory burn = CctpMessage.unpackBurn(body);
        address recipient = CctpMessage.toAddress(burn.mintRecipient);
        address token = localMinter.mint(sourceDomain, burn.burnToken, recipient, burn.amount);
        emit MintAndWithdraw(recipient, burn.amount, token);
        return true;
    }
}
