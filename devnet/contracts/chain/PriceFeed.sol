// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title What a consumer sees of a Chainlink feed: prices, or with decimals 0 the uptime of a sequencer.
contract PriceFeed {
    uint8 public decimals;
    int256 private answer;
    uint256 private startedAt;
    /// @dev 0: every block has an update.
    uint256 private updatedAt;

    function initialize(uint8 decimals_, int256 answer_) external {
        require(startedAt == 0, "feed: already initialised");
        (decimals, answer, startedAt) = (decimals_, answer_, 1);
    }

    /// @dev Unrestricted: a local chain has no oracles.
    function setRound(uint8 decimals_, int256 answer_, uint256 startedAt_, uint256 updatedAt_) external {
        (decimals, answer, startedAt, updatedAt) = (decimals_, answer_, startedAt_, updatedAt_);
    }

    function latestRoundData() external view returns (uint80, int256, uint256, uint256, uint80) {
        return (1, answer, startedAt, updatedAt == 0 ? block.timestamp : updatedAt, 1);
    }
}
