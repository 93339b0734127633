// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Token} from "../tokens/Token.sol";
import {Bridge} from "./Bridge.sol";

/// @title The bridge of one token on L1: holds the backing of the L2s, accepts deposits and pays transfers out.
/// @notice Supports ERC-20 tokens and, with a zero token address, the native coin.
contract L1Bridge is Bridge {
    Token public l1CanonicalToken;
    mapping(uint256 => bool) private activeChainIds;
    mapping(uint256 => bool) public isChainIdPaused;

    event TransferSentToL2(
        uint256 indexed chainId,
        address indexed recipient,
        uint256 amount,
        uint256 amountOutMin,
        uint256 deadline,
        address indexed relayer,
        uint256 relayerFee
    );

    function initialize(
        Token l1CanonicalToken_,
        uint256[] calldata chainIds,
        address messenger,
        address[] calldata bonders,
        uint256 stakeOfEach
    ) external {
        _setUp(messenger, bonders, stakeOfEach);
        l1CanonicalToken = l1CanonicalToken_;
        for (uint256 i = 0; i < chainIds.length; i++) activeChainIds[chainIds[i]] = true;
    }

    /// @notice Accepts a deposit; the messenger then calls `distribute` on the L2 bridge of `chainId`.
    function sendToL2(
        uint256 chainId,
        address recipient,
        uint256 amount,
        uint256 amountOutMin,
        uint256 deadline,
        address relayer,
        uint256 relayerFee
    ) external payable {
        require(activeChainIds[chainId], "bridge: chain not supported");
        require(!isChainIdPaused[chainId], "bridge: deposits to this chain are paused");
        require(amount > 0, "bridge: nothing to send");
        require(amount >= relayerFee, "bridge: relayer fee above amount");
        _takeIn(msg.sender, amount);
        emit TransferSentToL2(chainId, recipient, amount, amountOutMin, deadline, relayer, relayerFee);
    }

    /// @dev Done by governance on the real chain.
    function setChainIdDepositsPaused(uint256 chainId, bool isPaused) external onlyMessenger {
        isChainIdPaused[chainId] = isPaused;
    }

    function _payOut(address recipient, uint256 amount) internal override {
        if (_isNative()) {
            (bool paid, ) = recipient.call{value: amount}("");
            require(paid, "bridge: payment refused");
        } else {
            l1CanonicalToken.transfer(recipient, amount);
        }
    }

    function _takeIn(address payer, uint256 amount) internal override {
        require(msg.value == (_isNative() ? amount : 0), "bridge: wrong value");
        if (!_isNative()) l1CanonicalToken.transferFrom(payer, address(this), amount);
    }

    function _isNative() private view returns (bool) {
        return address(l1CanonicalToken) == address(0);
    }
}
