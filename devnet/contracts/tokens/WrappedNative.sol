// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC20} from "./ERC20.sol";

/// @title The chain's native coin as an ERC-20: WETH, WMATIC or WXDAI.
/// @dev Balances set by `initialize` must be backed by the same amount of native coin.
contract WrappedNative is ERC20 {
    event Deposit(address indexed dst, uint256 wad);
    event Withdrawal(address indexed src, uint256 wad);

    function initialize(string calldata name_, string calldata symbol_, Holding[] calldata holdings) external {
        _describe(name_, symbol_, 18);
        for (uint256 i = 0; i < holdings.length; i++) balanceOf[holdings[i].holder] += holdings[i].amount;
    }

    receive() external payable {
        deposit();
    }

    function deposit() public payable {
        balanceOf[msg.sender] += msg.value;
        emit Deposit(msg.sender, msg.value);
    }

    function withdraw(uint256 wad) external {
        require(balanceOf[msg.sender] >= wad, "wrapped: balance too low");
        balanceOf[msg.sender] -= wad;
        (bool paid, ) = msg.sender.call{value: wad}("");
        require(paid, "wrapped: payment refused");
        emit Withdrawal(msg.sender, wad);
    }

    function totalSupply() external view returns (uint256) {
        return address(this).balance;
    }

    /// @dev The maximum allowance is infinite, and no Approval is emitted, as in WETH9.
    function _spendAllowance(address holder, address spender, uint256 amount) internal override {
        uint256 allowed = allowance[holder][spender];
        if (holder == spender || allowed == type(uint256).max) return;
        require(allowed >= amount, "wrapped: allowance too low");
        allowance[holder][spender] = allowed - amount;
    }
}
