// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title What is called here of Arbitrum's own contract, which knows the number of Arbitrum's blocks: that of EVM code is L1's.
contract ArbSys {
    function arbBlockNumber() external view returns (uint256) {
        return block.number;
    }
}
