// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Token} from "../tokens/Token.sol";
import {Bridge} from "./Bridge.sol";

/// @title The bridge of one token on L1: holds the backing of the L2s, accepts deposits, pays transfers out and forwards roots.
/// @notice Supports ERC-20 tokens and, with a zero token address, the native coin.
contract L1Bridge is Bridge {
    struct TransferBond {
        address bonder;
        uint256 createdAt;
        uint256 totalAmount;
        uint256 challengeStartTime;
        address challenger;
        bool challengeResolved;
    }

    Token public l1CanonicalToken;
    mapping(uint256 => bool) private activeChainIds;
    mapping(uint256 => bool) public isChainIdPaused;
    mapping(bytes32 => TransferBond) public transferBonds;
    mapping(uint256 => mapping(bytes32 => uint256)) public transferRootCommittedAt;

    event TransferSentToL2(
        uint256 indexed chainId,
        address indexed recipient,
        uint256 amount,
        uint256 amountOutMin,
        uint256 deadline,
        address indexed relayer,
        uint256 relayerFee
    );
    event TransferRootBonded(bytes32 indexed root, uint256 amount);
    event TransferRootConfirmed(
        uint256 indexed originChainId,
        uint256 indexed destinationChainId,
        bytes32 indexed rootHash,
        uint256 totalAmount
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

    /// @notice The fast way of a root: a bonder vouches for it.
    function bondTransferRoot(bytes32 rootHash, uint256 destinationChainId, uint256 totalAmount) external onlyBonder {
        bytes32 rootId = getTransferRootId(rootHash, totalAmount);
        require(
            transferRootCommittedAt[destinationChainId][rootId] == 0,
            "L1_BRG: TransferRoot has already been confirmed"
        );
        require(transferBonds[rootId].createdAt == 0, "L1_BRG: TransferRoot has already been bonded");
        transferBonds[rootId] = TransferBond(msg.sender, block.timestamp, totalAmount, 0, address(0), false);
        _distributeTransferRoot(rootHash, destinationChainId, totalAmount);
        emit TransferRootBonded(rootHash, totalAmount);
    }

    /// @notice The slow way of a root: the message of the L2 bridge has arrived.
    function confirmTransferRoot(
        uint256 originChainId,
        bytes32 rootHash,
        uint256 destinationChainId,
        uint256 totalAmount,
        uint256 rootCommittedAt
    ) external onlyMessenger {
        bytes32 rootId = getTransferRootId(rootHash, totalAmount);
        require(
            transferRootCommittedAt[destinationChainId][rootId] == 0,
            "L1_BRG: TransferRoot already confirmed"
        );
        require(rootCommittedAt > 0, "L1_BRG: rootCommittedAt must be greater than 0");
        transferRootCommittedAt[destinationChainId][rootId] = rootCommittedAt;
        if (transferBonds[rootId].createdAt == 0) _distributeTransferRoot(rootHash, destinationChainId, totalAmount);
        emit TransferRootConfirmed(originChainId, destinationChainId, rootHash, totalAmount);
    }

    /// @dev Done by governance on the real chain.
    function setChainIdDepositsPaused(uint256 chainId, bool isPaused) external onlyMessenger {
        isChainIdPaused[chainId] = isPaused;
    }

    /// @dev Towards an L2, the messenger then calls `setTransferRoot` there.
    function _distributeTransferRoot(bytes32 rootHash, uint256 destinationChainId, uint256 totalAmount) private {
        if (destinationChainId == getChainId()) _setTransferRoot(rootHash, totalAmount);
        else require(activeChainIds[destinationChainId], "L1_BRG: chainId not supported");
    }

    function _payOut(address recipient, uint256 amount) internal override {
        if (_isNative()) {
            (bool paid, ) = recipient.call{value: amount}("");
            require(paid, "L1_ETH_BRG: ETH transfer failed");
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
