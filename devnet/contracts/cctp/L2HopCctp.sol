// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Token} from "../tokens/Token.sol";
import {ExactInputRouter} from "../uniswap/ExactInputRouter.sol";
import {L1HopCctp} from "./L1HopCctp.sol";
import {TokenMessenger} from "./TokenMessenger.sol";

/// @title Hop's CCTP bridge on an L2, which can also swap bridged USDC on Uniswap first.
contract L2HopCctp is L1HopCctp {
    Token public bridgedToken;
    ExactInputRouter public amm;

    function initializeL2(
        Token nativeToken_,
        TokenMessenger cctp_,
        address feeCollector,
        uint256 minBonderFee_,
        Destination[] calldata destinations,
        Token bridgedToken_,
        ExactInputRouter amm_
    ) external {
        initialize(nativeToken_, cctp_, feeCollector, minBonderFee_, destinations);
        bridgedToken = bridgedToken_;
        amm = amm_;
        bridgedToken.approve(address(amm), type(uint256).max);
    }

    /// @dev The swap must turn exactly `amount` of bridged USDC into native USDC of this contract.
    function swapAndSend(
        uint256 chainId,
        address recipient,
        uint256 amount,
        uint256 bonderFee,
        ExactInputRouter.ExactInputParams calldata swapParams
    ) external {
        bytes calldata path = swapParams.path;
        require(address(bytes20(path[:20])) == address(bridgedToken), "hop cctp: path must start with bridged USDC");
        require(address(bytes20(path[path.length - 20:])) == address(nativeToken), "hop cctp: path must end with USDC");
        require(swapParams.recipient == address(this), "hop cctp: swap must pay this contract");
        require(swapParams.amountIn == amount, "hop cctp: swap is for another amount");
        bridgedToken.transferFrom(msg.sender, address(this), amount);
        _send(chainId, recipient, amm.exactInput(swapParams), bonderFee);
    }
}
