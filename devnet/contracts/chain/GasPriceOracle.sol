// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title The OP Stack's L1 data fee, by the Bedrock formula.
contract GasPriceOracle {
    uint256 private constant GAS_PER_ZERO_BYTE = 4;
    uint256 private constant GAS_PER_OTHER_BYTE = 16;
    /// @dev Bytes that the signature adds to the unsigned transaction.
    uint256 private constant SIGNATURE_BYTES = 68;
    uint256 public constant decimals = 6;

    uint256 public l1BaseFee;
    uint256 public overhead;
    uint256 public scalar;

    function initialize(uint256 l1BaseFee_, uint256 overhead_, uint256 scalar_) external {
        require(scalar == 0, "oracle: already initialised");
        (l1BaseFee, overhead, scalar) = (l1BaseFee_, overhead_, scalar_);
    }

    /// @dev Unrestricted: a local chain has no L1 to read it from.
    function setL1BaseFee(uint256 l1BaseFee_) external {
        l1BaseFee = l1BaseFee_;
    }

    /// @return L1 data fee in wei, on top of the L2 gas fee.
    function getL1Fee(bytes calldata data) external view returns (uint256) {
        return (getL1GasUsed(data) * l1BaseFee * scalar) / 10 ** decimals;
    }

    function getL1GasUsed(bytes calldata data) public view returns (uint256 gasUsed) {
        gasUsed = overhead + SIGNATURE_BYTES * GAS_PER_OTHER_BYTE;
        for (uint256 i = 0; i < data.length; i++) gasUsed += data[i] == 0 ? GAS_PER_ZERO_BYTE : GAS_PER_OTHER_BYTE;
    }
}
