// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @title ERC-20 base of the local tokens.
/// @dev Tokens are placed at given addresses without running a constructor, so all state is set by a child's `initialize`.
abstract contract ERC20 {
    struct Holding {
        address holder;
        uint256 amount;
    }

    string public name;
    string public symbol;
    uint8 public decimals;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    function approve(address spender, uint256 amount) external returns (bool) {
        _approve(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _transfer(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        _transfer(from, to, amount);
        _spendAllowance(from, msg.sender, amount);
        return true;
    }

    function _describe(string calldata name_, string calldata symbol_, uint8 decimals_) internal {
        require(bytes(symbol).length == 0, "token: already initialised");
        name = name_;
        symbol = symbol_;
        decimals = decimals_;
    }

    function _approve(address holder, address spender, uint256 amount) internal {
        allowance[holder][spender] = amount;
        emit Approval(holder, spender, amount);
    }

    function _transfer(address from, address to, uint256 amount) internal {
        require(to != address(0), "token: transfer to nobody");
        require(balanceOf[from] >= amount, "token: balance too low");
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
    }

    function _spendAllowance(address holder, address spender, uint256 amount) internal virtual;
}
