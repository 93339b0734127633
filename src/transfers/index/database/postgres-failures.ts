import { IndexUnavailableError } from "./index-database.js";

// What a failure of PostgreSQL is called. The messages of the driver and the server can name hosts, users and values.

/** A failure that only an operator can end: the configuration and the server do not fit. */
const CONFIGURATION_FAILURES: Readonly<Record<string, string>> = {
  "28000": "the server refuses this user, address or encryption",
  "28P01": "the password is wrong",
  "3D000": "the database does not exist",
  "42501": "the user lacks a privilege",
};

/** What the operator reads for the most frequent other failures, by SQLSTATE or by the code of a system error. */
const FAILURES: Readonly<Record<string, string>> = {
  "25006": "the server is read-only",
  "53100": "the disk of the server is full",
  "53300": "the server has too many connections",
  "55P03": "a lock was not granted in time",
  "57014": "a statement took too long",
  "57P01": "the server is shutting down",
  "57P02": "the server is shutting down",
  "57P03": "the server is starting",
  ENOENT: "the Unix socket or the file of sslrootcert does not exist",
  ECONNREFUSED: "the server refuses connections",
  ECONNRESET: "the connection was lost",
  ENOTFOUND: "the host is unknown",
  ETIMEDOUT: "the server does not answer",
};

/** PostgreSQL did not do what it was asked for. The message contains no value, host or user. */
export class PostgresFailure extends IndexUnavailableError {
  /** SQLSTATE, or the code of a system error; empty: unknown. */
  readonly code: string;
  override readonly isTemporary: boolean;
  /** Whether the next statement will probably fail as well: there is no working connection. */
  readonly isUnavailable: boolean;

  constructor(code: string, summary = CONFIGURATION_FAILURES[code] ?? FAILURES[code] ?? "the request failed") {
    super(`PostgreSQL: ${summary}${code === "" ? "" : ` (${code})`}`);
    this.code = code;
    this.isTemporary = !(code in CONFIGURATION_FAILURES);
    // Classes of SQLSTATE: 08 connection, 28 authentication, 3D database, 53 resources, 57P shutdown.
    this.isUnavailable = !/^[0-9A-Z]{5}$/.test(code) || /^(08|28|3D|53|57P)/.test(code);
  }
}

/** Converts an error of the driver; the original one is dropped, since its message and fields may contain secrets. */
export function toPostgresFailure(error: unknown): PostgresFailure {
  if (error instanceof PostgresFailure) return error;
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  if (typeof code === "string" && /^[A-Z0-9_]{1,40}$/.test(code)) return new PostgresFailure(code);
  // The driver's own errors have no code.
  const text = typeof message === "string" ? message : "";
  if (/timeout/i.test(text)) return new PostgresFailure("ETIMEDOUT");
  return /connection/i.test(text) ? new PostgresFailure("ECONNRESET") : new PostgresFailure("");
}
