// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Token} from "../tokens/Token.sol";
import {IUniswapV3Factory, IUniswapV3Pool} from "./IUniswapV3.sol";

/// @title The function of Uniswap's SwapRouter02 that Hop's CCTP bridges call, for single-pool paths.
contract ExactInputRouter {
    struct ExactInputParams {
        bytes path;
        address recipient;
        uint256 amountIn;
        uint256 amountOutMinimum;
    }

    uint160 private constant LOWEST_PRICE = 4295128739 + 1;
    uint160 private constant HIGHEST_PRICE = 1461446703485210103287273052203988822378723970342 - 1;
    /// @dev A path is token in (20 bytes), fee (3 bytes), token out (20 bytes).
    uint256 private constant PATH_LENGTH = 43;

    IUniswapV3Factory public factory;

    function initialize(IUniswapV3Factory factory_) external {
        require(address(factory) == address(0), "router: already initialised");
        factory = factory_;
    }

    function exactInput(ExactInputParams calldata params) external payable returns (uint256 amountOut) {
        bytes calldata path = params.path;
        require(path.length == PATH_LENGTH, "router: one pool only");
        (address tokenIn, uint24 fee) = (address(bytes20(path[0:20])), uint24(bytes3(path[20:23])));
        address tokenOut = address(bytes20(path[23:43]));
        bool zeroForOne = tokenIn < tokenOut;
        (int256 amount0, int256 amount1) = factory.getPool(tokenIn, tokenOut, fee).swap(
            params.recipient,
            zeroForOne,
            int256(params.amountIn),
            zeroForOne ? LOWEST_PRICE : HIGHEST_PRICE,
            abi.encode(tokenIn, tokenOut, fee, msg.sender)
        );
        amountOut = uint256(-(zeroForOne ? amount1 : amount0));
        require(amountOut >= params.amountOutMinimum, "router: below the minimum");
    }

    /// @notice Pays the pool on behalf of the caller of `exactInput`.
    function uniswapV3SwapCallback(int256 amount0Delta, int256 amount1Delta, bytes calldata data) external {
        (address tokenIn, address tokenOut, uint24 fee, address payer) =
            abi.decode(data, (address, address, uint24, address));
        require(msg.sender == address(factory.getPool(tokenIn, tokenOut, fee)), "router: not the pool");
        uint256 owed = uint256(amount0Delta > 0 ? amount0Delta : amount1Delta);
        Token(tokenIn).transferFrom(payer, msg.sender, owed);
    }
}
