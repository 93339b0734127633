// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Token} from "../tokens/Token.sol";
import {CctpMessage} from "./CctpMessage.sol";
import {TokenMessenger} from "./TokenMessenger.sol";

/// @title Hop's CCTP bridge: keeps the fee and burns the rest for minting on another chain.
contract L1HopCctp {
    struct Destination {
        uint256 chainId;
        uint32 domain;
    }

    Token public nativeToken;
    TokenMessenger public cctp;
    address public feeCollectorAddress;
    uint256 public minBonderFee;
    mapping(uint256 => bool) public activeChainIds;
    mapping(uint256 => uint32) public destinationDomains;

    event CCTPTransferSent(
        uint64 indexed cctpNonce,
        uint256 indexed chainId,
        address indexed recipient,
        uint256 amount,
        uint256 bonderFee
    );

    function initialize(
        Token nativeToken_,
        TokenMessenger cctp_,
        address feeCollector,
        uint256 minBonderFee_,
        Destination[] calldata destinations
    ) public {
        require(address(cctp) == address(0), "hop cctp: already initialised");
        nativeToken = nativeToken_;
        cctp = cctp_;
        feeCollectorAddress = feeCollector;
        minBonderFee = minBonderFee_;
        for (uint256 i = 0; i < destinations.length; i++) {
            activeChainIds[destinations[i].chainId] = true;
            destinationDomains[destinations[i].chainId] = destinations[i].domain;
        }
        nativeToken.approve(address(cctp), type(uint256).max);
    }

    /// @param amount Raw units, including the fee.
    function send(uint256 chainId, address recipient, uint256 amount, uint256 bonderFee) external {
        nativeToken.transferFrom(msg.sender, address(this), amount);
        _send(chainId, recipient, amount, bonderFee);
    }

    function _send(uint256 chainId, address recipient, uint256 amount, uint256 bonderFee) internal {
        require(amount > bonderFee, "hop cctp: amount not above the fee");
        require(bonderFee >= minBonderFee, "hop cctp: fee too low");
        require(activeChainIds[chainId], "hop cctp: chain not supported");
        nativeToken.transfer(feeCollectorAddress, bonderFee);
        uint64 nonce = cctp.depositForBurn(
            amount - bonderFee, destinationDomains[chainId], CctpMessage.toBytes32(recipient), address(nativeToken)
        );
        emit CCTPTransferSent(nonce, chainId, recipient, amount, bonderFee);
    }
}
