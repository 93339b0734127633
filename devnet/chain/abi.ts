import { utils } from "ethers";

// The functions and events of each contract that the local network uses. Names and types are those of the real contracts,
// except `mint`, `owner` and `messenger`, which exist only on the local tokens and bridges.

export const erc20Abi = new utils.Interface([
  "function approve(address spender, uint256 amount) returns (bool)",
  "function owner() view returns (address)",
  "function mint(address account, uint256 amount)",
]);

export const l1BridgeAbi = new utils.Interface([
  "function sendToL2(uint256 chainId, address recipient, uint256 amount, uint256 amountOutMin, uint256 deadline, address relayer, uint256 relayerFee) payable",
  "function confirmTransferRoot(uint256 originChainId, bytes32 rootHash, uint256 destinationChainId, uint256 totalAmount, uint256 rootCommittedAt)",
  "event TransferSentToL2(uint256 indexed chainId, address indexed recipient, uint256 amount, uint256 amountOutMin, uint256 deadline, address indexed relayer, uint256 relayerFee)",
]);

export const l2BridgeAbi = new utils.Interface([
  "function send(uint256 chainId, address recipient, uint256 amount, uint256 bonderFee, uint256 amountOutMin, uint256 deadline)",
  "function bondWithdrawal(address recipient, uint256 amount, bytes32 transferNonce, uint256 bonderFee)",
  "function bondWithdrawalAndDistribute(address recipient, uint256 amount, bytes32 transferNonce, uint256 bonderFee, uint256 amountOutMin, uint256 deadline)",
  "function distribute(address recipient, uint256 amount, uint256 amountOutMin, uint256 deadline, address relayer, uint256 relayerFee)",
  "function commitTransfers(uint256 destinationChainId)",
  "function setTransferRoot(bytes32 rootHash, uint256 totalAmount)",
  "function rescueTransferRoot(bytes32 rootHash, uint256 originalAmount, address recipient)",
  "function withdraw(address recipient, uint256 amount, bytes32 transferNonce, uint256 bonderFee, uint256 amountOutMin, uint256 deadline, bytes32 rootHash, uint256 transferRootTotalAmount, uint256 transferIdTreeIndex, bytes32[] siblings, uint256 totalLeaves)",
  "function messenger() view returns (address)",
  "function isTransferIdSpent(bytes32 transferId) view returns (bool)",
  "event TransfersCommitted(uint256 indexed destinationChainId, bytes32 indexed rootHash, uint256 totalAmount, uint256 rootCommittedAt)",
  "event TransferSent(bytes32 indexed transferId, uint256 indexed chainId, address indexed recipient, uint256 amount, bytes32 transferNonce, uint256 bonderFee, uint256 index, uint256 amountOutMin, uint256 deadline)",
]);

export const ammWrapperAbi = new utils.Interface([
  "function swapAndSend(uint256 chainId, address recipient, uint256 amount, uint256 bonderFee, uint256 amountOutMin, uint256 deadline, uint256 destinationAmountOutMin, uint256 destinationDeadline) payable",
]);

export const cctpBridgeAbi = new utils.Interface([
  "function send(uint256 chainId, address recipient, uint256 amount, uint256 bonderFee)",
  "function swapAndSend(uint256 chainId, address recipient, uint256 amount, uint256 bonderFee, (bytes path, address recipient, uint256 amountIn, uint256 amountOutMinimum) swapParams)",
  "event CCTPTransferSent(uint64 indexed cctpNonce, uint256 indexed chainId, address indexed recipient, uint256 amount, uint256 bonderFee)",
]);

export const messageTransmitterAbi = new utils.Interface([
  "function receiveMessage(bytes message, bytes attestation) returns (bool)",
  "event MessageSent(bytes message)",
]);

export const multicall3Abi = new utils.Interface([
  "function aggregate3((address target, bool allowFailure, bytes callData)[] calls) payable returns ((bool success, bytes returnData)[])",
]);
