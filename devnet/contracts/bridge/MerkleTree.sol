// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title The Merkle tree of a transfer root, as Hop's Lib_MerkleTree: the leaves are neither hashed nor sorted.
/// @notice Where a row of odd length lacks its last right child, an empty subtree of that height takes its place.
library MerkleTree {
    /// @dev Overwrites the leaves.
    function getRoot(bytes32[] memory nodes) internal pure returns (bytes32) {
        require(nodes.length > 0, "Lib_MerkleTree: Must provide at least one leaf hash.");
        bytes32 emptySubtree = keccak256(abi.encode(bytes32(0)));
        for (uint256 length = nodes.length; length > 1; length = (length + 1) / 2) {
            for (uint256 i = 0; i < length; i += 2) {
                nodes[i / 2] = _hashPair(nodes[i], i + 1 < length ? nodes[i + 1] : emptySubtree);
            }
            emptySubtree = _hashPair(emptySubtree, emptySubtree);
        }
        return nodes[0];
    }

    function verify(bytes32 root, bytes32 leaf, uint256 index, bytes32[] calldata siblings, uint256 totalLeaves)
        internal
        pure
        returns (bool)
    {
        require(totalLeaves > 0, "Lib_MerkleTree: Total leaves must be greater than zero.");
        require(index < totalLeaves, "Lib_MerkleTree: Index out of bounds.");
        uint256 height = 0;
        while ((totalLeaves - 1) >> height > 0) height++;
        require(
            siblings.length == height,
            "Lib_MerkleTree: Total siblings does not correctly correspond to total leaves."
        );
        bytes32 node = leaf;
        for (uint256 i = 0; i < height; i++) {
            bool isRight = (index >> i) & 1 == 1;
            node = isRight ? _hashPair(siblings[i], node) : _hashPair(node, siblings[i]);
        }
        return node == root;
    }

    function _hashPair(bytes32 left, bytes32 right) private pure returns (bytes32) {
        return keccak256(abi.encode(left, right));
    }
}
