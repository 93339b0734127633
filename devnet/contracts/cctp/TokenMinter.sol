// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Token} from "../tokens/Token.sol";

/// @title Burns and mints USDC for the token messenger and maps remote tokens to local ones.
contract TokenMinter {
    address public localTokenMessenger;
    /// @notice Burn limit per message and local token, in raw units.
    mapping(address => uint256) public burnLimitsPerMessage;
    mapping(bytes32 => address) public remoteTokensToLocalTokens;

    struct RemoteToken {
        uint32 domain;
        bytes32 token;
    }

    modifier onlyMessenger() {
        require(msg.sender == localTokenMessenger, "cctp: not the token messenger");
        _;
    }

    function initialize(address messenger, address localToken, uint256 burnLimit, RemoteToken[] calldata remoteTokens)
        external
    {
        require(localTokenMessenger == address(0), "cctp: already initialised");
        localTokenMessenger = messenger;
        burnLimitsPerMessage[localToken] = burnLimit;
        for (uint256 i = 0; i < remoteTokens.length; i++) {
            remoteTokensToLocalTokens[_key(remoteTokens[i].domain, remoteTokens[i].token)] = localToken;
        }
    }

    function mint(uint32 sourceDomain, bytes32 burnToken, address to, uint256 amount)
        external
        onlyMessenger
        returns (address mintToken)
    {
        mintToken = getLocalToken(sourceDomain, burnToken);
        require(mintToken != address(0), "cctp: token not linked");
        Token(mintToken).mint(to, amount);
    }

    function burn(address burnToken, uint256 burnAmount) external onlyMessenger {
        require(burnAmount <= burnLimitsPerMessage[burnToken], "cctp: above the burn limit");
        Token(burnToken).burn(address(this), burnAmount);
    }

    function getLocalToken(uint32 remoteDomain, bytes32 remoteToken) public view returns (address) {
        return remoteTokensToLocalTokens[_key(remoteDomain, remoteToken)];
    }

    function _key(uint32 domain, bytes32 token) private pure returns (bytes32) {
        return keccak256(abi.encodePacked(domain, token));
    }
}
