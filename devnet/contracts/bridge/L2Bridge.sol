// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {AmmWrapper} from "../amm/AmmWrapper.sol";
import {Token} from "../tokens/Token.sol";
import {Bridge} from "./Bridge.sol";
import {MerkleTree} from "./MerkleTree.sol";

/// @title The bridge of one token on one L2: burns hTokens that are sent and mints hTokens that arrive.
/// @notice Roots do not travel by themselves: the messenger calls the L1 bridge, and `setTransferRoot` on an L2.
contract L2Bridge is Bridge {
    bytes32 private constant NONCE_DOMAIN = keccak256("L2_Bridge v1.0");
    uint256 private constant BPS = 10_000;

    Token public hToken;
    /// @notice Zero for a token without a pool, which cannot be swapped.
    AmmWrapper public ammWrapper;
    uint256 public minBonderBps;
    uint256 public minBonderFeeAbsolute;
    uint256 public minimumForceCommitDelay;
    uint256 public maxPendingTransfers;
    uint256 public transferNonceIncrementer;
    mapping(uint256 => bool) public activeChainIds;
    mapping(uint256 => uint256) public pendingAmountForChainId;
    mapping(uint256 => bytes32[]) public pendingTransferIdsForChainId;
    mapping(uint256 => uint256) public lastCommitTimeForChainId;

    event TransferSent(
        bytes32 indexed transferId,
        uint256 indexed chainId,
        address indexed recipient,
        uint256 amount,
        bytes32 transferNonce,
        uint256 bonderFee,
        uint256 index,
        uint256 amountOutMin,
        uint256 deadline
    );
    event TransfersCommitted(
        uint256 indexed destinationChainId,
        bytes32 indexed rootHash,
        uint256 totalAmount,
        uint256 rootCommittedAt
    );
    event TransferFromL1Completed(
        address indexed recipient,
        uint256 amount,
        uint256 amountOutMin,
        uint256 deadline,
        address indexed relayer,
        uint256 relayerFee
    );

    function initialize(
        Token hToken_,
        AmmWrapper ammWrapper_,
        uint256[] calldata chainIds,
        uint256 minBonderBps_,
        uint256 minBonderFeeAbsolute_,
        address messenger,
        address[] calldata bonders,
        uint256 stakeOfEach
    ) external {
        _setUp(messenger, bonders, stakeOfEach);
        hToken = hToken_;
        ammWrapper = ammWrapper_;
        minBonderBps = minBonderBps_;
        minBonderFeeAbsolute = minBonderFeeAbsolute_;
        minimumForceCommitDelay = 4 hours;
        maxPendingTransfers = 1024;
        for (uint256 i = 0; i < chainIds.length; i++) activeChainIds[chainIds[i]] = true;
    }

    /// @notice Sends `amount` hTokens of the caller to `chainId`.
    /// @dev A full list is committed first. `amountOutMin` and `deadline` are kept even towards L1, where a swap is impossible:
    /// such a transfer is unbondable.
    function send(
        uint256 chainId,
        address recipient,
        uint256 amount,
        uint256 bonderFee,
        uint256 amountOutMin,
        uint256 deadline
    ) external {
        require(amount > 0, "bridge: nothing to send");
        require(amount >= bonderFee, "bridge: bonder fee above amount");
        uint256 relative = (amount * minBonderBps) / BPS;
        uint256 least = relative > minBonderFeeAbsolute ? relative : minBonderFeeAbsolute;
        require(bonderFee >= least, "bridge: bonder fee too low");
        require(activeChainIds[chainId], "bridge: chain not supported");

        if (pendingTransferIdsForChainId[chainId].length >= maxPendingTransfers) _commitTransfers(chainId);
        hToken.burn(msg.sender, amount);
        bytes32 transferNonce = getNextTransferNonce();
        transferNonceIncrementer++;
        bytes32 transferId =
            getTransferId(chainId, recipient, amount, transferNonce, bonderFee, amountOutMin, deadline);
        uint256 index = pendingTransferIdsForChainId[chainId].length;
        pendingTransferIdsForChainId[chainId].push(transferId);
        pendingAmountForChainId[chainId] += amount;
        emit TransferSent(
            transferId, chainId, recipient, amount, transferNonce, bonderFee, index, amountOutMin, deadline
        );
    }

    /// @notice Makes the transfers that wait for a chain one root, and starts to collect the next one.
    /// @dev A bonder may do it at any time, anyone after the delay.
    function commitTransfers(uint256 destinationChainId) external {
        require(
            block.timestamp > lastCommitTimeForChainId[destinationChainId] + minimumForceCommitDelay
                || getIsBonder(msg.sender),
            "L2_BRG: Only Bonder can commit before min delay"
        );
        lastCommitTimeForChainId[destinationChainId] = block.timestamp;
        _commitTransfers(destinationChainId);
    }

    function setTransferRoot(bytes32 rootHash, uint256 totalAmount) external onlyMessenger {
        _setTransferRoot(rootHash, totalAmount);
    }

    /// @dev Done by governance on the real chain.
    function setMaxPendingTransfers(uint256 maxPendingTransfers_) external onlyMessenger {
        maxPendingTransfers = maxPendingTransfers_;
    }

    /// @notice Bonds a transfer and swaps it to canonical tokens for the recipient.
    function bondWithdrawalAndDistribute(
        address recipient,
        uint256 amount,
        bytes32 transferNonce,
        uint256 bonderFee,
        uint256 amountOutMin,
        uint256 deadline
    ) external onlyBonder withinCredit {
        bytes32 transferId =
            getTransferId(getChainId(), recipient, amount, transferNonce, bonderFee, amountOutMin, deadline);
        _bond(transferId, amount, bonderFee);
        _distribute(recipient, amount, amountOutMin, deadline, msg.sender, bonderFee);
    }

    /// @notice Delivers a deposit made on L1.
    function distribute(
        address recipient,
        uint256 amount,
        uint256 amountOutMin,
        uint256 deadline,
        address relayer,
        uint256 relayerFee
    ) external onlyMessenger {
        _distribute(recipient, amount, amountOutMin, deadline, relayer, relayerFee);
        emit TransferFromL1Completed(recipient, amount, amountOutMin, deadline, relayer, relayerFee);
    }

    function getNextTransferNonce() public view returns (bytes32) {
        return keccak256(abi.encodePacked(NONCE_DOMAIN, getChainId(), transferNonceIncrementer));
    }

    function _commitTransfers(uint256 destinationChainId) private {
        bytes32[] memory transferIds = pendingTransferIdsForChainId[destinationChainId];
        require(transferIds.length > 0, "L2_BRG: Must commit at least 1 Transfer");
        uint256 totalAmount = pendingAmountForChainId[destinationChainId];
        delete pendingTransferIdsForChainId[destinationChainId];
        delete pendingAmountForChainId[destinationChainId];
        emit TransfersCommitted(destinationChainId, MerkleTree.getRoot(transferIds), totalAmount, block.timestamp);
    }

    function _distribute(
        address recipient,
        uint256 amount,
        uint256 amountOutMin,
        uint256 deadline,
        address feeRecipient,
        uint256 fee
    ) private {
        if (fee > 0) hToken.mint(feeRecipient, fee);
        uint256 afterFee = amount - fee;
        if (amountOutMin == 0 && deadline == 0) {
            hToken.mint(recipient, afterFee);
        } else {
            hToken.mint(address(this), afterFee);
            hToken.approve(address(ammWrapper), afterFee);
            ammWrapper.attemptSwap(recipient, afterFee, amountOutMin, deadline);
        }
    }

    function _payOut(address recipient, uint256 amount) internal override {
        hToken.mint(recipient, amount);
    }

    function _takeIn(address payer, uint256 amount) internal override {
        hToken.burn(payer, amount);
    }
}
