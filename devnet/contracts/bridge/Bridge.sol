// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {MerkleTree} from "./MerkleTree.sol";

/// @title Base of the L1 and L2 bridges: bonders, their credit, and which transfers were paid out.
/// @notice A transfer is paid out once, either early by a bonder (`WithdrawalBonded`) or by anyone once its root is set (`Withdrew`).
/// Settling a bond counts it against its root and gives the bonder its credit back.
abstract contract Bridge {
    struct TransferRoot {
        uint256 total;
        uint256 amountWithdrawn;
        uint256 createdAt;
    }

    uint256 private constant RESCUE_DELAY = 8 weeks;

    /// @notice Relays between the chains, as the rollups' messengers do, and acts as governance.
    address public messenger;
    mapping(address => bool) private bonders;
    mapping(address => uint256) private credit;
    mapping(address => uint256) private debit;
    mapping(bytes32 => bool) private spent;
    mapping(address => mapping(bytes32 => uint256)) private bondedAmounts;
    mapping(bytes32 => TransferRoot) private roots;

    event Stake(address indexed account, uint256 amount);
    event TransferRootSet(bytes32 indexed rootHash, uint256 totalAmount);
    event WithdrawalBondSettled(address indexed bonder, bytes32 indexed transferId, bytes32 indexed rootHash);
    event MultipleWithdrawalsSettled(address indexed bonder, bytes32 indexed rootHash, uint256 totalBondsSettled);
    event WithdrawalBonded(bytes32 indexed transferId, uint256 amount);
    event Withdrew(bytes32 indexed transferId, address indexed recipient, uint256 amount, bytes32 transferNonce);

    modifier onlyBonder() {
        require(bonders[msg.sender], "bridge: not a bonder");
        _;
    }

    modifier onlyMessenger() {
        require(msg.sender == messenger, "bridge: not the messenger");
        _;
    }

    /// @dev Checks that stake covers the debit, the new bond included.
    modifier withinCredit() {
        _;
        require(credit[msg.sender] >= debit[msg.sender], "bridge: credit too low");
    }

    function _payOut(address recipient, uint256 amount) internal virtual;

    function _takeIn(address payer, uint256 amount) internal virtual;

    function _setUp(address messenger_, address[] calldata bonders_, uint256 stakeOfEach) internal {
        require(messenger == address(0), "bridge: already initialised");
        messenger = messenger_;
        for (uint256 i = 0; i < bonders_.length; i++) {
            bonders[bonders_[i]] = true;
            credit[bonders_[i]] = stakeOfEach;
        }
    }

    /// @dev Unused here, like `getIsBonder`; kept since the number of functions affects the gas of a call.
    function stake(address bonder, uint256 amount) external payable {
        require(bonders[bonder], "bridge: not a bonder");
        _takeIn(msg.sender, amount);
        credit[bonder] += amount;
        emit Stake(bonder, amount);
    }

    /// @notice Bonds a transfer without a swap; the bonder keeps the fee.
    function bondWithdrawal(address recipient, uint256 amount, bytes32 transferNonce, uint256 bonderFee)
        external
        onlyBonder
        withinCredit
    {
        bytes32 transferId = getTransferId(getChainId(), recipient, amount, transferNonce, bonderFee, 0, 0);
        _bond(transferId, amount, bonderFee);
        _payOut(recipient, amount - bonderFee);
        _payOut(msg.sender, bonderFee);
    }

    /// @notice Withdraws an unbonded transfer, in full and without a swap, once its root is set.
    function withdraw(
        address recipient,
        uint256 amount,
        bytes32 transferNonce,
        uint256 bonderFee,
        uint256 amountOutMin,
        uint256 deadline,
        bytes32 rootHash,
        uint256 transferRootTotalAmount,
        uint256 transferIdTreeIndex,
        bytes32[] calldata siblings,
        uint256 totalLeaves
    ) external {
        bytes32 transferId =
            getTransferId(getChainId(), recipient, amount, transferNonce, bonderFee, amountOutMin, deadline);
        _requireLeaf(rootHash, transferId, transferIdTreeIndex, siblings, totalLeaves);
        _addToAmountWithdrawn(getTransferRootId(rootHash, transferRootTotalAmount), amount);
        _spend(transferId);
        _payOut(recipient, amount);
        emit Withdrew(transferId, recipient, amount, transferNonce);
    }

    function settleBondedWithdrawal(
        address bonder,
        bytes32 transferId,
        bytes32 rootHash,
        uint256 transferRootTotalAmount,
        uint256 transferIdTreeIndex,
        bytes32[] calldata siblings,
        uint256 totalLeaves
    ) external {
        _requireLeaf(rootHash, transferId, transferIdTreeIndex, siblings, totalLeaves);
        uint256 amount = _takeBond(bonder, transferId);
        _addToAmountWithdrawn(getTransferRootId(rootHash, transferRootTotalAmount), amount);
        credit[bonder] += amount;
        emit WithdrawalBondSettled(bonder, transferId, rootHash);
    }

    /// @param transferIds All leaves of the root, in their order.
    function settleBondedWithdrawals(address bonder, bytes32[] calldata transferIds, uint256 totalAmount) external {
        bytes32 rootHash = MerkleTree.getRoot(transferIds);
        uint256 amount = 0;
        for (uint256 i = 0; i < transferIds.length; i++) amount += _takeBond(bonder, transferIds[i]);
        _addToAmountWithdrawn(getTransferRootId(rootHash, totalAmount), amount);
        credit[bonder] += amount;
        emit MultipleWithdrawalsSettled(bonder, rootHash, amount);
    }

    /// @notice Takes out what is left of an old root, so that its transfers cannot be withdrawn any more.
    function rescueTransferRoot(bytes32 rootHash, uint256 originalAmount, address recipient) external onlyMessenger {
        bytes32 rootId = getTransferRootId(rootHash, originalAmount);
        TransferRoot memory root = roots[rootId];
        require(root.createdAt != 0, "BRG: TransferRoot not found");
        require(
            block.timestamp >= root.createdAt + RESCUE_DELAY,
            "BRG: TransferRoot cannot be rescued before the Rescue Delay"
        );
        uint256 remaining = root.total - root.amountWithdrawn;
        _addToAmountWithdrawn(rootId, remaining);
        _payOut(recipient, remaining);
    }

    function isTransferIdSpent(bytes32 transferId) external view returns (bool) {
        return spent[transferId];
    }

    function getIsBonder(address maybeBonder) public view returns (bool) {
        return bonders[maybeBonder];
    }

    function getCredit(address bonder) external view returns (uint256) {
        return credit[bonder];
    }

    function getRawDebit(address bonder) external view returns (uint256) {
        return debit[bonder];
    }

    /// @dev On the real L1, the roots that a bonder has bonded in the last day add to its debit.
    function getDebitAndAdditionalDebit(address bonder) external view returns (uint256) {
        return debit[bonder];
    }

    function getBondedWithdrawalAmount(address bonder, bytes32 transferId) external view returns (uint256) {
        return bondedAmounts[bonder][transferId];
    }

    function getTransferRoot(bytes32 rootHash, uint256 totalAmount) external view returns (TransferRoot memory) {
        return roots[getTransferRootId(rootHash, totalAmount)];
    }

    function getChainId() public view returns (uint256) {
        return block.chainid;
    }

    function getTransferId(
        uint256 chainId,
        address recipient,
        uint256 amount,
        bytes32 transferNonce,
        uint256 bonderFee,
        uint256 amountOutMin,
        uint256 deadline
    ) public pure returns (bytes32) {
        return keccak256(abi.encode(chainId, recipient, amount, transferNonce, bonderFee, amountOutMin, deadline));
    }

    function getTransferRootId(bytes32 rootHash, uint256 totalAmount) public pure returns (bytes32) {
        return keccak256(abi.encodePacked(rootHash, totalAmount));
    }

    function _bond(bytes32 transferId, uint256 amount, uint256 bonderFee) internal {
        require(bonderFee <= amount, "bridge: bonder fee above amount");
        _spend(transferId);
        debit[msg.sender] += amount;
        bondedAmounts[msg.sender][transferId] = amount;
        emit WithdrawalBonded(transferId, amount);
    }

    function _setTransferRoot(bytes32 rootHash, uint256 totalAmount) internal {
        TransferRoot storage root = roots[getTransferRootId(rootHash, totalAmount)];
        require(root.createdAt == 0, "BRG: Transfer root already set");
        require(totalAmount > 0, "BRG: Cannot set TransferRoot totalAmount of 0");
        root.total = totalAmount;
        root.createdAt = block.timestamp;
        emit TransferRootSet(rootHash, totalAmount);
    }

    function _addToAmountWithdrawn(bytes32 rootId, uint256 amount) private {
        TransferRoot storage root = roots[rootId];
        require(root.total > 0, "BRG: Transfer root not found");
        require(root.amountWithdrawn + amount <= root.total, "BRG: Withdrawal exceeds TransferRoot total");
        root.amountWithdrawn += amount;
    }

    function _takeBond(address bonder, bytes32 transferId) private returns (uint256 amount) {
        amount = bondedAmounts[bonder][transferId];
        if (amount > 0) delete bondedAmounts[bonder][transferId];
    }

    function _spend(bytes32 transferId) private {
        require(!spent[transferId], "BRG: The transfer has already been withdrawn");
        spent[transferId] = true;
    }

    function _requireLeaf(
        bytes32 rootHash,
        bytes32 transferId,
        uint256 index,
        bytes32[] calldata siblings,
        uint256 totalLeaves
    ) private pure {
        require(MerkleTree.verify(rootHash, transferId, index, siblings, totalLeaves), "BRG: Invalid transfer proof");
    }
}
