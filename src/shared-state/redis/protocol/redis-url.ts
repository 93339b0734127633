/** Where Redis is and who connects to it. Contains a password: never log it. */
export interface RedisTarget {
  readonly host: string;
  readonly port: number;
  readonly isTls: boolean;
  /** undefined: the default user. */
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Number of the database. */
  readonly database: number;
}

const DEFAULT_PORT = 6379;

/** Parses `redis[s]://[[user]:password@]host[:port][/database]`. Returns undefined for anything else. */
export function parseRedisUrl(text: string): RedisTarget | undefined {
  let url: URL;
  try {
    url = new URL(text);
    const database = /^\/?([0-9]{0,4})$/.exec(url.pathname)?.[1];
    const isTls = url.protocol === "rediss:";
    if ((!isTls && url.protocol !== "redis:") || url.hostname === "" || database === undefined) return undefined;
    // Options that are ignored would seem to work.
    if (url.search !== "" || url.hash !== "") return undefined;
    return {
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: url.port === "" ? DEFAULT_PORT : Number(url.port),
      isTls,
      username: decodeURIComponent(url.username) || undefined,
      password: decodeURIComponent(url.password) || undefined,
      database: Number(database),
    };
  } catch {
    return undefined;
  }
}
