// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Token} from "../tokens/Token.sol";
import {IUniswapV3Pool} from "./IUniswapV3.sol";

/// @title Provides liquidity to Uniswap v3 pools from its own balance.
contract LiquidityProvider {
    function provide(IUniswapV3Pool pool, int24 tickLower, int24 tickUpper, uint128 liquidity) external {
        pool.mint(address(this), tickLower, tickUpper, liquidity, abi.encode(pool));
    }

    /// @dev Pays any pool that asks: its tokens belong to the local network.
    function uniswapV3MintCallback(uint256 amount0, uint256 amount1, bytes calldata data) external {
        IUniswapV3Pool pool = abi.decode(data, (IUniswapV3Pool));
        if (amount0 > 0) Token(pool.token0()).transfer(msg.sender, amount0);
        if (amount1 > 0) Token(pool.token1()).transfer(msg.sender, amount1);
    }
}
