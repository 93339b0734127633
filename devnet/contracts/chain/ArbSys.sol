// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title The function of ArbSys that returns Arbitrum's block number; `block.number` is that of L1 there.
contract ArbSys {
    function arbBlockNumber() external view returns (uint256) {
        return block.number;
    }
}
