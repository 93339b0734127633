// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {StableSwap} from "./StableSwap.sol";
import {L2Bridge} from "../bridge/L2Bridge.sol";
import {Token} from "../tokens/Token.sol";
import {WrappedNative} from "../tokens/WrappedNative.sol";

/// @title Sends and receives canonical tokens over a bridge that moves hTokens only.
/// @notice Where the canonical token is the wrapped native coin, callers pay and receive the native coin.
contract AmmWrapper {
    uint8 private constant CANONICAL = 0;
    uint8 private constant HTOKEN = 1;

    L2Bridge public bridge;
    Token public l2CanonicalToken;
    bool public l2CanonicalTokenIsEth;
    Token public hToken;
    StableSwap public exchangeAddress;

    function initialize(
        L2Bridge bridge_,
        Token l2CanonicalToken_,
        bool l2CanonicalTokenIsEth_,
        Token hToken_,
        StableSwap exchange
    ) external {
        require(address(bridge) == address(0), "wrapper: already initialised");
        bridge = bridge_;
        l2CanonicalToken = l2CanonicalToken_;
        l2CanonicalTokenIsEth = l2CanonicalTokenIsEth_;
        hToken = hToken_;
        exchangeAddress = exchange;
    }

    /// @dev Accepts coins only from unwrapping; others would be locked.
    receive() external payable {
        require(msg.sender == address(l2CanonicalToken), "wrapper: takes no gifts");
    }

    /// @notice Swaps `amount` of the canonical token to hTokens here and sends them over the bridge.
    function swapAndSend(
        uint256 chainId,
        address recipient,
        uint256 amount,
        uint256 bonderFee,
        uint256 amountOutMin,
        uint256 deadline,
        uint256 destinationAmountOutMin,
        uint256 destinationDeadline
    ) external payable {
        require(amount >= bonderFee, "wrapper: bonder fee above amount");
        if (l2CanonicalTokenIsEth) {
            require(msg.value == amount, "wrapper: value is not the amount");
            _wrapped().deposit{value: amount}();
        } else {
            require(msg.value == 0, "wrapper: takes no coins");
            l2CanonicalToken.transferFrom(msg.sender, address(this), amount);
        }
        l2CanonicalToken.approve(address(exchangeAddress), amount);
        uint256 hTokens = exchangeAddress.swap(CANONICAL, HTOKEN, amount, amountOutMin, deadline);
        bridge.send(chainId, recipient, hTokens, bonderFee, destinationAmountOutMin, destinationDeadline);
    }

    /// @notice Takes hTokens from the caller and pays `recipient` canonical tokens, or the hTokens if the swap fails.
    function attemptSwap(address recipient, uint256 amount, uint256 amountOutMin, uint256 deadline) external {
        hToken.transferFrom(msg.sender, address(this), amount);
        hToken.approve(address(exchangeAddress), amount);
        try exchangeAddress.swap(HTOKEN, CANONICAL, amount, amountOutMin, deadline) returns (uint256 canonical) {
            if (l2CanonicalTokenIsEth) {
                _wrapped().withdraw(canonical);
                (bool paid, ) = recipient.call{value: canonical}("");
                require(paid, "wrapper: payment refused");
            } else {
                l2CanonicalToken.transfer(recipient, canonical);
            }
        } catch {
            hToken.transfer(recipient, amount);
        }
    }

    function _wrapped() private view returns (WrappedNative) {
        return WrappedNative(payable(address(l2CanonicalToken)));
    }
}
