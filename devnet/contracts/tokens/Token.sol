// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {ERC20} from "./ERC20.sol";

/// @title A token that its owner, and minters named at the start, can mint and burn.
/// @notice Serves as canonical token (owned by the faucet), as hToken (owned by the L2 bridge) and as LP token (owned by the pool).
/// `transferFrom` reports the remaining allowance in an Approval event, as the deployed hTokens do.
contract Token is ERC20 {
    uint256 public totalSupply;
    address public owner;
    mapping(address => bool) public isMinter;

    modifier onlyMinter() {
        require(msg.sender == owner || isMinter[msg.sender], "token: not a minter");
        _;
    }

    function initialize(
        string calldata name_,
        string calldata symbol_,
        uint8 decimals_,
        address owner_,
        address[] calldata minters,
        Holding[] calldata holdings
    ) external {
        _describe(name_, symbol_, decimals_);
        owner = owner_;
        for (uint256 i = 0; i < minters.length; i++) isMinter[minters[i]] = true;
        for (uint256 i = 0; i < holdings.length; i++) _mint(holdings[i].holder, holdings[i].amount);
    }

    function mint(address account, uint256 amount) external onlyMinter {
        _mint(account, amount);
    }

    /// @dev Needs no allowance from `account`: a bridge burns what is sent through it.
    function burn(address account, uint256 amount) external onlyMinter {
        require(balanceOf[account] >= amount, "token: burn exceeds balance");
        balanceOf[account] -= amount;
        totalSupply -= amount;
        emit Transfer(account, address(0), amount);
    }

    function _mint(address account, uint256 amount) private {
        totalSupply += amount;
        balanceOf[account] += amount;
        emit Transfer(address(0), account, amount);
    }

    function _spendAllowance(address holder, address spender, uint256 amount) internal override {
        require(allowance[holder][spender] >= amount, "token: allowance too low");
        _approve(holder, spender, allowance[holder][spender] - amount);
    }
}
