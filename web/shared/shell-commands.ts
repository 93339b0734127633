/** One argument for a POSIX shell, in single quotes where it needs any. */
export function escapeShellArgument(argument: string): string {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", `'\\''`)}'`;
}

/** The command that asks a path of the interface. */
export function buildCurlCommand(origin: string, path: string): string {
  return `curl ${escapeShellArgument(origin + path)}`;
}

/**
 * The command that asks the same over gRPC. The service has reflection, so that it needs no file.
 * @param method with its service, such as `grpc.health.v1.Health/Check`
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
