// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {StableSwapMath} from "./StableSwapMath.sol";
import {Token} from "../tokens/Token.sol";

/// @title A StableSwap pool of a canonical token (index 0) and its hToken (index 1).
/// @notice Same results and events as the deployed pools, with fees and amplification in the same units
/// (fees of 1e10, `swapStorage` amplifications times 100).
contract StableSwap {
    struct Swap {
        uint256 initialA;
        uint256 futureA;
        uint256 initialATime;
        uint256 futureATime;
        uint256 swapFee;
        uint256 adminFee;
        uint256 defaultWithdrawFee;
        Token lpToken;
    }

    uint256 private constant FEE_DENOMINATOR = 1e10;
    uint256 private constant POOL_DECIMALS = 18;
    uint256 private constant MAX_A = 1e6;
    uint256 private constant MIN_RAMP_TIME = 14 days;

    Swap public swapStorage;
    address public owner;
    Token[2] private tokens;
    uint256[2] private multipliers;
    uint256[2] private balances;

    event TokenSwap(address indexed buyer, uint256 tokensSold, uint256 tokensBought, uint128 soldId, uint128 boughtId);
    event AddLiquidity(address indexed provider, uint256[] tokenAmounts, uint256[] fees, uint256 invariant, uint256 lpTokenSupply);
    event RampA(uint256 oldA, uint256 newA, uint256 initialTime, uint256 futureTime);

    modifier before(uint256 deadline) {
        require(block.timestamp <= deadline, "pool: deadline passed");
        _;
    }

    /// @param decimals Decimals of both tokens, which are always equal.
    /// @param balances_ Initial balances; the caller must also credit the pool with these tokens.
    function initialize(
        address owner_,
        Token[2] calldata tokens_,
        uint8 decimals,
        uint256[2] calldata balances_,
        Swap calldata parameters
    ) external {
        require(multipliers[0] == 0, "pool: already initialised");
        owner = owner_;
        tokens = tokens_;
        uint256 multiplier = 10 ** (POOL_DECIMALS - decimals);
        multipliers = [multiplier, multiplier];
        balances = balances_;
        swapStorage = parameters;
    }

    function swap(uint8 tokenIndexFrom, uint8 tokenIndexTo, uint256 dx, uint256 minDy, uint256 deadline)
        external
        before(deadline)
        returns (uint256 dy)
    {
        uint256 dyFee;
        (dy, dyFee) = _quote(tokenIndexFrom, tokenIndexTo, dx);
        require(dy >= minDy, "pool: below minDy");
        tokens[tokenIndexFrom].transferFrom(msg.sender, address(this), dx);
        uint256 adminShare = (dyFee * swapStorage.adminFee) / FEE_DENOMINATOR / multipliers[tokenIndexTo];
        balances[tokenIndexFrom] += dx;
        balances[tokenIndexTo] -= dy + adminShare;
        tokens[tokenIndexTo].transfer(msg.sender, dy);
        emit TokenSwap(msg.sender, dx, dy, tokenIndexFrom, tokenIndexTo);
    }

    /// @notice Mints LP tokens for the growth of the invariant, less a fee on imbalance; the first deposit mints D.
    function addLiquidity(uint256[] calldata amounts, uint256 minToMint, uint256 deadline)
        external
        before(deadline)
        returns (uint256 minted)
    {
        require(amounts.length == 2, "pool: two amounts");
        uint256 supply = swapStorage.lpToken.totalSupply();
        uint256 oldInvariant = supply == 0 ? 0 : StableSwapMath.invariant(_scaled(balances), getAPrecise());
        uint256[2] memory grown;
        for (uint256 i = 0; i < 2; i++) {
            require(supply != 0 || amounts[i] > 0, "pool: first deposit needs both tokens");
            if (amounts[i] > 0) tokens[i].transferFrom(msg.sender, address(this), amounts[i]);
            grown[i] = balances[i] + amounts[i];
        }
        uint256 newInvariant = StableSwapMath.invariant(_scaled(grown), getAPrecise());
        require(newInvariant > oldInvariant, "pool: nothing added");

        uint256[] memory fees = new uint256[](2);
        uint256[2] memory kept = grown;
        if (supply == 0) {
            minted = newInvariant;
        } else {
            uint256[2] memory charged;
            for (uint256 i = 0; i < 2; i++) {
                uint256 ideal = (newInvariant * balances[i]) / oldInvariant;
                uint256 distance = ideal > grown[i] ? ideal - grown[i] : grown[i] - ideal;
                // The fee per token is swapFee * n / (4 * (n - 1)), which for two tokens is half the swap fee.
                fees[i] = ((swapStorage.swapFee / 2) * distance) / FEE_DENOMINATOR;
                charged[i] = grown[i] - fees[i];
                kept[i] = grown[i] - (fees[i] * swapStorage.adminFee) / FEE_DENOMINATOR;
            }
            uint256 chargedInvariant = StableSwapMath.invariant(_scaled(charged), getAPrecise());
            minted = ((chargedInvariant - oldInvariant) * supply) / oldInvariant;
        }
        require(minted >= minToMint, "pool: below minToMint");
        balances = kept;
        swapStorage.lpToken.mint(msg.sender, minted);
        emit AddLiquidity(msg.sender, amounts, fees, newInvariant, supply + minted);
    }

    /// @notice Moves A linearly in block time to `futureA` (a plain coefficient, not times 100), at most by half or double.
    function rampA(uint256 futureA, uint256 futureTime) external {
        require(msg.sender == owner, "pool: not the owner");
        require(block.timestamp >= swapStorage.initialATime + 1 days, "pool: ramped less than a day ago");
        require(futureTime >= block.timestamp + MIN_RAMP_TIME, "pool: ramp too short");
        require(futureA > 0 && futureA < MAX_A, "pool: A out of range");
        uint256 current = getAPrecise();
        uint256 future = futureA * StableSwapMath.A_PRECISION;
        require(future <= current * 2 && current <= future * 2, "pool: A changes too much");
        swapStorage.initialA = current;
        swapStorage.futureA = future;
        swapStorage.initialATime = block.timestamp;
        swapStorage.futureATime = futureTime;
        emit RampA(current, future, block.timestamp, futureTime);
    }

    function calculateSwap(uint8 tokenIndexFrom, uint8 tokenIndexTo, uint256 dx) external view returns (uint256 dy) {
        (dy, ) = _quote(tokenIndexFrom, tokenIndexTo, dx);
    }

    function getA() external view returns (uint256) {
        return getAPrecise() / StableSwapMath.A_PRECISION;
    }

    function getAPrecise() public view returns (uint256) {
        (uint256 from, uint256 to) = (swapStorage.initialA, swapStorage.futureA);
        (uint256 start, uint256 end) = (swapStorage.initialATime, swapStorage.futureATime);
        if (block.timestamp >= end) return to;
        uint256 elapsed = block.timestamp - start;
        return to > from ? from + ((to - from) * elapsed) / (end - start) : from - ((from - to) * elapsed) / (end - start);
    }

    function getToken(uint8 index) external view returns (Token) {
        require(index < 2, "pool: no such token");
        return tokens[index];
    }

    function getTokenIndex(address tokenAddress) external view returns (uint8 index) {
        while (index < 2 && address(tokens[index]) != tokenAddress) index++;
        require(index < 2, "pool: no such token");
    }

    function getTokenBalance(uint8 index) external view returns (uint256) {
        require(index < 2, "pool: no such token");
        return balances[index];
    }

    /// @notice Value of one LP token, with 18 decimals; 0 before the first deposit.
    function getVirtualPrice() external view returns (uint256) {
        uint256 supply = swapStorage.lpToken.totalSupply();
        uint256 d = StableSwapMath.invariant(_scaled(balances), getAPrecise());
        return supply == 0 ? 0 : (d * 10 ** POOL_DECIMALS) / supply;
    }

    /// @return dy Units of the other token out, after the fee.
    /// @return dyFee The fee, scaled to 18 decimals.
    function _quote(uint8 from, uint8 to, uint256 dx) private view returns (uint256 dy, uint256 dyFee) {
        require(from < 2 && to < 2 && from != to, "pool: no such pair");
        uint256[2] memory xp = _scaled(balances);
        uint256 x = dx * multipliers[from] + xp[from];
        uint256 scaledDy = xp[to] - StableSwapMath.otherBalance(x, xp, getAPrecise()) - 1;
        dyFee = (scaledDy * swapStorage.swapFee) / FEE_DENOMINATOR;
        dy = (scaledDy - dyFee) / multipliers[to];
    }

    function _scaled(uint256[2] memory amounts) private view returns (uint256[2] memory) {
        return [amounts[0] * multipliers[0], amounts[1] * multipliers[1]];
    }
}
