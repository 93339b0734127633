// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title The StableSwap invariant for two tokens, in integers.
/// @notice Every division floors and every intermediate value that leaves uint256 reverts (checked arithmetic), so results are
/// exactly those of the deployed pools. `xp` are balances scaled to 18 decimals, `a` is the amplification times A_PRECISION.
library StableSwapMath {
    uint256 internal constant A_PRECISION = 100;
    uint256 private constant N = 2;
    uint256 private constant MAX_ROUNDS = 256;

    /// @notice The invariant D: the pool's total when both balances are equal. Reverts when Newton's method does not converge.
    function invariant(uint256[2] memory xp, uint256 a) internal pure returns (uint256 d) {
        uint256 sum = xp[0] + xp[1];
        if (sum == 0) return 0;
        uint256 nA = a * N;
        d = sum;
        for (uint256 round = 0; round < MAX_ROUNDS; round++) {
            uint256 dP = d;
            dP = (dP * d) / (xp[0] * N);
            dP = (dP * d) / (xp[1] * N);
            uint256 previous = d;
            d = (((nA * sum) / A_PRECISION + dP * N) * d) / (((nA - A_PRECISION) * d) / A_PRECISION + (N + 1) * dP);
            if (_settled(d, previous)) return d;
        }
        revert("pool: D does not converge");
    }

    /// @notice The balance of the other token at which the invariant still holds when one token's balance is `x`.
    function otherBalance(uint256 x, uint256[2] memory xp, uint256 a) internal pure returns (uint256 y) {
        uint256 d = invariant(xp, a);
        uint256 nA = a * N;
        uint256 c = (d * d) / (x * N);
        c = (c * d * A_PRECISION) / (nA * N);
        uint256 b = x + (d * A_PRECISION) / nA;
        y = d;
        for (uint256 round = 0; round < MAX_ROUNDS; round++) {
            uint256 previous = y;
            y = (y * y + c) / (2 * y + b - d);
            if (_settled(y, previous)) return y;
        }
        revert("pool: y does not converge");
    }

    function _settled(uint256 current, uint256 previous) private pure returns (bool) {
        return current > previous ? current - previous <= 1 : previous - current <= 1;
    }
}
