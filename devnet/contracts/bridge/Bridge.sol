// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title Base of the L1 and L2 bridges: bonders, their credit, and which transfers were paid out.
/// @notice A transfer is paid out once, either early by a bonder (`WithdrawalBonded`) or by anyone once its root is set (`Withdrew`).
/// Bonded amounts are never settled here, so a bonder's debit only grows.
abstract contract Bridge {
    struct TransferRoot {
        uint256 total;
        uint256 amountWithdrawn;
        uint256 createdAt;
    }

    /// @notice Trusted to set roots and, on L2, to distribute deposits; on real chains the rollup's messenger.
    address public messenger;
    mapping(address => bool) private bonders;
    mapping(address => uint256) private credit;
    mapping(address => uint256) private debit;
    mapping(bytes32 => bool) private spent;
    mapping(address => mapping(bytes32 => uint256)) private bondedAmounts;
    mapping(bytes32 => TransferRoot) private roots;

    event Stake(address indexed account, uint256 amount);
    event TransferRootSet(bytes32 indexed rootHash, uint256 totalAmount);
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

    function setTransferRoot(bytes32 rootHash, uint256 totalAmount) external onlyMessenger {
        TransferRoot storage root = roots[getTransferRootId(rootHash, totalAmount)];
        require(root.createdAt == 0, "bridge: root already set");
        require(totalAmount > 0, "bridge: empty root");
        root.total = totalAmount;
        root.createdAt = block.timestamp;
        emit TransferRootSet(rootHash, totalAmount);
    }

    /// @notice Withdraws an unbonded transfer, in full and without a swap, once its root is set.
    /// @dev The root of a single transfer is its id: index 0, no siblings, one leaf.
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
        require(_rootOf(transferId, transferIdTreeIndex, siblings, totalLeaves) == rootHash, "bridge: not in this root");
        TransferRoot storage root = roots[getTransferRootId(rootHash, transferRootTotalAmount)];
        require(root.createdAt != 0, "bridge: root not known");
        root.amountWithdrawn += amount;
        require(root.amountWithdrawn <= root.total, "bridge: root exceeded");
        _spend(transferId);
        _payOut(recipient, amount);
        emit Withdrew(transferId, recipient, amount, transferNonce);
    }

    function isTransferIdSpent(bytes32 transferId) external view returns (bool) {
        return spent[transferId];
    }

    function getIsBonder(address maybeBonder) external view returns (bool) {
        return bonders[maybeBonder];
    }

    function getCredit(address bonder) external view returns (uint256) {
        return credit[bonder];
    }

    function getRawDebit(address bonder) external view returns (uint256) {
        return debit[bonder];
    }

    /// @dev Bonded roots would add to the debit on L1; the local network has none.
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

    function _spend(bytes32 transferId) private {
        require(!spent[transferId], "bridge: transfer already paid out");
        spent[transferId] = true;
    }

    function _rootOf(bytes32 leaf, uint256 index, bytes32[] calldata siblings, uint256 totalLeaves)
        private
        pure
        returns (bytes32 node)
    {
        require(index < totalLeaves && totalLeaves <= 2 ** siblings.length, "bridge: bad proof");
        node = leaf;
        for (uint256 i = 0; i < siblings.length; i++) {
            bool isRight = (index >> i) & 1 == 1;
            node = isRight ? keccak256(abi.encodePacked(siblings[i], node)) : keccak256(abi.encodePacked(node, siblings[i]));
        }
    }
}
