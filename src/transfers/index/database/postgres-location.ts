// Where PostgreSQL is: parsed once, so that no other code handles the URL, which contains the password.

/** How the server is authenticated and the connection encrypted, as libpq's `sslmode`. */
export type SslMode = "disable" | "require" | "verify-ca" | "verify-full";

/** A database of a PostgreSQL server. */
export interface PostgresLocation {
  /** Host name, address, or folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  /** Never log it. */
  readonly password: string | undefined;
  readonly sslMode: SslMode;
  /** File with the certificates that sign the server's; undefined: those that Node.js trusts. */
  readonly sslRootCertificate: string | undefined;
}

/** Where the index is and what one process may take of the servers. */
export interface PostgresIndexLocation {
  readonly primary: PostgresLocation;
  /** A server that follows the primary, for all reads of requests; undefined: the primary. */
  readonly read: PostgresLocation | undefined;
  /** The primary without a pooler, for notifications; undefined: none are received. */
  readonly listen: PostgresLocation | undefined;
  /** Connections for reads; writes have up to WRITE_CONNECTIONS of their own. */
  readonly poolSize: number;
  readonly statementTimeoutMs: number;
}

const DEFAULT_PORT = 5432;
const SSL_MODES: readonly SslMode[] = ["disable", "require", "verify-ca", "verify-full"];
const PARAMETERS = new Set(["sslmode", "sslrootcert", "host"]);

/**
 * Parses `postgres://user:password@host:port/database?sslmode=verify-full&sslrootcert=<file>`. The parameter
 * `host` replaces the host, also by the folder of a Unix socket. Returns undefined for anything else, also without `sslmode` for a host that is not
 * this machine: a password must not be sent in the clear by an omission.
 */
export function parsePostgresUrl(text: string): PostgresLocation | undefined {
  const url = /^postgres(ql)?:\/\//.test(text) && URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || [...url.searchParams.keys()].some((name) => !PARAMETERS.has(name))) return undefined;
  try {
    const host = url.searchParams.get("host") ?? decodeURIComponent(url.hostname).replace(/^\[(.*)\]$/, "$1");
    const database = decodeURIComponent(url.pathname.slice(1));
    const user = decodeURIComponent(url.username);
    const password = decodeURIComponent(url.password);
    const sslMode = parseSslMode(url.searchParams.get("sslmode"), host);
    if (host === "" || database === "" || user === "" || sslMode === undefined) return undefined;
    return {
      host,
      database,
      user,
      sslMode,
      port: url.port === "" ? DEFAULT_PORT : Number(url.port),
      password: password === "" ? undefined : password,
      sslRootCertificate: url.searchParams.get("sslrootcert") ?? undefined,
    };
  } catch {
    // A percent sign that begins no character.
    return undefined;
  }
}

function parseSslMode(text: string | null, host: string): SslMode | undefined {
  if (text !== null) return SSL_MODES.find((mode) => mode === text);
  return /^(\/|localhost$|127\.|::1$)/.test(host) ? "disable" : undefined;
}
