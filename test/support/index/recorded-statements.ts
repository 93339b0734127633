import { getNetwork } from "../../../src/hop/networks.js";
import {
  openSqlite,
  type SqliteConnection,
  SqliteDatabase,
} from "../../../src/transfers/index/database/sqlite-database.js";
import { TransferIndex } from "../../../src/transfers/index/transfer-index.js";

/**
 * Opens an index file.
 * @param executed receives the statements that are run to read it, without their values
 */
export async function openRecordedIndex(file: string, executed: string[]): Promise<TransferIndex> {
  const reader = await openSqlite(file, { readOnly: true });
  const database = new SqliteDatabase(recordStatements(reader, executed), await openSqlite(file));
  return new TransferIndex(database, getNetwork("mainnet"));
}

function recordStatements(connection: SqliteConnection, executed: string[]): SqliteConnection {
  const overridden: Partial<SqliteConnection> = {
    prepare(sql, options) {
      const statement = connection.prepare(sql, options);
      const all: typeof statement.all = (...parameters) => {
        executed.push(sql);
        return statement.all(...parameters);
      };
      return new Proxy(statement, { get: (target, name) => (name === "all" ? all : getBound(target, name)) });
    },
    exec(sql) {
      executed.push(sql);
      connection.exec(sql);
    },
  };
  return new Proxy(connection, {
    get: (target, name) => Reflect.get(overridden, name) ?? getBound(target, name),
  });
}

/** Returns a member of an object of the driver, whose methods need the very object. */
function getBound(target: object, name: string | symbol): unknown {
  const member: unknown = Reflect.get(target, name, target);
  return typeof member === "function" ? member.bind(target) : member;
}

/** Returns the steps of SQLite's plan for a statement. */
export async function explainQuery(file: string, sql = ""): Promise<readonly string[]> {
  const connection = await openSqlite(file, { readOnly: true });
  try {
    return connection
      .prepare(`explain query plan ${sql}`)
      .all()
      .map(({ detail }) => String(detail));
  } finally {
    connection.close();
  }
}
