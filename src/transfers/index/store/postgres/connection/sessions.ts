import type { PoolClient, QueryConfig } from "pg";

// Planning a statement takes longer than running it, and the server plans a prepared one only a few times. Poolers that assign
// servers per transaction may lose prepared statements, so these are used only on connections to the server itself.

export interface QueryResult<Row> {
  readonly command: string;
  readonly rowCount: number;
  readonly rows: Row[];
}

/** Runs named statements prepared where the server keeps them. */
export interface Sessions {
  /** Runs a statement outside of transactions: prepared if the connection leads to the server itself, once otherwise. */
  query<Row>(client: PoolClient, run: RunQuery, query: NamedQuery): Promise<QueryResult<Row>>;
}

type RunQuery = <Row>(query: QueryConfig) => Promise<QueryResult<Row>>;
type NamedQuery = QueryConfig & { readonly name: string };

/** SQLSTATEs of a prepared statement that the server does not have, has under this name already, or can no longer plan. */
const LOST_STATEMENT = new Set(["26000", "42P05", "0A000"]);

export function createSessions(): Sessions {
  const isOwnSession = new WeakMap<PoolClient, boolean>();

  async function canPrepare(client: PoolClient, run: RunQuery): Promise<boolean> {
    let isOwn = isOwnSession.get(client);
    if (isOwn === undefined) {
      const { rows } = await run<{ pid: number }>({ text: "select pg_backend_pid() as pid" });
      // A pooler tells its clients a process ID of its own, which cancels the statements of whichever server they have then.
      isOwn = rows[0]?.pid === (client as { readonly processID?: number | null }).processID;
      isOwnSession.set(client, isOwn);
    }
    return isOwn;
  }

  return {
    async query(client, run, { name, ...query }) {
      if (!(await canPrepare(client, run))) return run(query);
      try {
        return await run({ ...query, name });
      } catch (error) {
        if (!LOST_STATEMENT.has(String((error as { readonly code?: unknown }).code))) throw error;
        isOwnSession.set(client, false);
        return run(query);
      }
    },
  };
}
