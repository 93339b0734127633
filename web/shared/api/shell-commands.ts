/** gRPC methods of the commands that the page shows. */
export const GRPC_METHODS = {
  quote: "hop.bridge.v1.BridgeService/GetQuote",
  quotes: "hop.bridge.v1.BridgeService/BatchGetQuotes",
  watchTransfers: "hop.bridge.v1.BridgeService/WatchTransfers",
  listTransfers: "hop.bridge.v1.BridgeService/ListTransfers",
  availableRoutes: "hop.bridge.v1.BridgeService/ListAvailableRoutes",
  health: "grpc.health.v1.Health/Check",
} as const;

/** Escapes an argument for a POSIX shell: puts it in single quotes if necessary. */
export function escapeShellArgument(argument: string): string {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}

/** Builds the curl command for a path of the API. */
export function buildCurlCommand(origin: string, path: string): string {
  return `curl ${escapeShellArgument(origin + path)}`;
}

/** Builds the curl command for a stream of events, which prints each when it arrives. */
export function buildCurlStreamCommand(origin: string, path: string): string {
  return `curl -N ${escapeShellArgument(origin + path)}`;
}

/** Builds the command that sends a transaction with Foundry, which asks for the key of the sender. */
export function buildCastCommand(call: {
  readonly chainId: number;
  readonly to: string;
  readonly data: string;
}): string {
  return `cast send --interactive --rpc-url "$RPC_URL" --chain ${call.chainId} ${call.to} ${call.data}`;
}

/**
 * Builds the grpcurl command for a request. The service supports reflection, so the command needs no proto file.
 * @param method service and method, such as `grpc.health.v1.Health/Check`
 */
export function buildGrpcurlCommand(
  origin: string,
  method: string,
  message: Readonly<Record<string, unknown>>,
): string {
  const { protocol, hostname, port } = new URL(origin);
  const isEncrypted = protocol === "https:";
  const address = `${hostname}:${port || (isEncrypted ? "443" : "80")}`;
  const data = Object.keys(message).length === 0 ? [] : ["-d", JSON.stringify(message)];
  return ["grpcurl", ...(isEncrypted ? [] : ["-plaintext"]), ...data, address, method]
    .map(escapeShellArgument)
    .join(" ");
}
