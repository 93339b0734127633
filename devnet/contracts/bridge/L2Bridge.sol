// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {AmmWrapper} from "../amm/AmmWrapper.sol";
import {Token} from "../tokens/Token.sol";
import {Bridge} from "./Bridge.sol";

/// @title The bridge of one token on one L2: burns hTokens that are sent and mints hTokens that arrive.
/// @notice Roots do not travel by themselves: `setTransferRoot` on the destination replaces the way through L1.
contract L2Bridge is Bridge {
    bytes32 private constant NONCE_DOMAIN = keccak256("L2_Bridge v1.0");
    uint256 private constant BPS = 10_000;

    Token public hToken;
    /// @notice Zero for a token without a pool, which cannot be swapped.
    AmmWrapper public ammWrapper;
    uint256 public minBonderBps;
    uint256 public minBonderFeeAbsolute;
    uint256 public transferNonceIncrementer;
    mapping(uint256 => bool) public activeChainIds;
    mapping(uint256 => uint256) public pendingAmountForChainId;
    mapping(uint256 => bytes32[]) public pendingTransferIdsForChainId;

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
        for (uint256 i = 0; i < chainIds.length; i++) activeChainIds[chainIds[i]] = true;
    }

    /// @notice Sends `amount` hTokens of the caller to `chainId`.
    /// @dev `amountOutMin` and `deadline` are kept even towards L1, where a swap is impossible: such a transfer is unbondable.
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
    /// @dev Anyone may do it at any time; on the real chains a bonder, or anyone after some hours.
    function commitTransfers(uint256 destinationChainId) external {
        bytes32[] memory transferIds = pendingTransferIdsForChainId[destinationChainId];
        require(transferIds.length > 0, "bridge: nothing to commit");
        uint256 totalAmount = pendingAmountForChainId[destinationChainId];
        delete pendingTransferIdsForChainId[destinationChainId];
        delete pendingAmountForChainId[destinationChainId];
        emit TransfersCommitted(destinationChainId, _merkleRoot(transferIds), totalAmount, block.timestamp);
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

    /// @dev Pads the leaves with zeros to a power of two.
    function _merkleRoot(bytes32[] memory leaves) private pure returns (bytes32) {
        uint256 width = 1;
        while (width < leaves.length) width *= 2;
        bytes32[] memory nodes = new bytes32[](width);
        for (uint256 i = 0; i < leaves.length; i++) nodes[i] = leaves[i];
        for (; width > 1; width /= 2) {
            for (uint256 i = 0; i < width / 2; i++) {
                nodes[i] = keccak256(abi.encodePacked(nodes[2 * i], nodes[2 * i + 1]));
            }
        }
        return nodes[0];
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
