import type { PostgresPool } from "../../src/transfers/index/database/postgres-pool.js";

// Fills an empty index in PostgreSQL with transfers whose values follow from their number, so that a later run knows them.

/** What the transfers of a filled index have in common. */
export interface FillOptions {
  readonly pool: Pick<PostgresPool, "query" | "connect">;
  readonly chainIds: readonly number[];
  readonly transfers: number;
}

const ROWS_PER_STATEMENT = 500_000;
const START_SECONDS = 1_700_000_000;
const DELIVERY_SECONDS = 60;
/** A transfer in a hundred has not been delivered. */
const PENDING = "i % 100 = 7";
const TOKEN = "(array['ETH', 'USDC.e', 'USDT', 'DAI'])[1 + i / 9 % 4]";
/** Bridges: every chain sends each of the four tokens to one other chain. */
const BRIDGES = 36;
/** Transfers of one root. */
const LEAVES = 1_000;
const TREE_INDEX = `i / ${BRIDGES} % ${LEAVES}`;
/** Transfers of an ordinary account. */
const TRANSFERS_PER_ACCOUNT = 100;

const sha256 = (text: string): string => `sha256((${text})::bytea)`;

/** SQL of the keys of a transfer, from SQL of its number. */
export const KEY_SQL = {
  transferId: (number: string) => sha256(`'key' || ${number}`),
  send: (number: string) => sha256(`'send' || ${number}`),
  delivery: (number: string) => sha256(`'delivery' || ${number}`),
} as const;

/** SQL of an account's address: one account has a tenth of all transfers, another tenth have one each, all others a hundred. */
export const ACCOUNT_SQL = {
  frequent: () => substring("'frequent'"),
  single: (number: string) => substring(`'single' || ${number}`),
  ordinary: (number: string, transfers: number) =>
    substring(`'ordinary' || ${number} % ${Math.ceil(transfers / TRANSFERS_PER_ACCOUNT)}`),
} as const;

function substring(text: string): string {
  return `substr(${sha256(text)}, 1, 20)`;
}

/** Fills sends and deliveries beside each other, each without its indexes, which are built at the end in a fraction of the time. */
export async function fillIndex({ pool, chainIds, transfers }: FillOptions): Promise<void> {
  const chain = (number: string): string => `(array[${chainIds}])[1 + (${number}) % ${chainIds.length}]`;
  const account = `case i % 10 when 0 then ${ACCOUNT_SQL.frequent()} when 1 then ${ACCOUNT_SQL.single("i")}
    else ${ACCOUNT_SQL.ordinary("i", transfers)} end`;
  const sends = `insert into sends (chain_id, block_number, log_index, transaction_hash, kind, token, arrival_key,
      destination_chain_id, recipient, amount, amount_out_min, deadline, bonder_fee, relayer, account, timestamp,
      transfer_nonce, tree_index)
    select ${chain("i")}, 2 + i / 100, i % 100 * 2, ${KEY_SQL.send("i")}, case ${chain("i")} when 1 then 'l1' else 'l2' end,
      ${TOKEN}, ${KEY_SQL.transferId("i")}, ${chain("i + 1")}, address, '1234567890123456789', '1234567890123456',
      '${START_SECONDS}', '123456789012345', null, address, ${START_SECONDS} + i / 10,
      case ${chain("i")} when 1 then null else ${sha256("'nonce' || i")} end,
      case ${chain("i")} when 1 then null else ${TREE_INDEX} end
    from (select i, ${account} as address from $series) as numbers`;
  const deliveries = `insert into deliveries
      (chain_id, block_number, log_index, transaction_hash, token, arrival_key, bonder, timestamp)
    select ${chain("i + 1")}, 2 + i / 100, i % 100, ${KEY_SQL.delivery("i")}, ${TOKEN}, ${KEY_SQL.transferId("i")},
      substr(${sha256("'bonder' || i % 10")}, 1, 20), ${START_SECONDS + DELIVERY_SECONDS} + i / 10
    from $series where not (${PENDING})`;
  // Each after the last leaf of its root.
  const commits = `insert into commits (chain_id, block_number, log_index, transaction_hash, token, destination_chain_id,
      root_hash, total_amount, committed_at)
    select ${chain("i")}, 2 + i / 100, i % 100 * 2 + 1, ${KEY_SQL.send("i")}, ${TOKEN}, ${chain("i + 1")},
      ${sha256("'root' || i")}, '1234567890123456789000', ${START_SECONDS} + i / 10
    from $series where ${chain("i")} <> 1 and ${TREE_INDEX} = ${LEAVES - 1}`;
  const fill = async (table: string, insert: string): Promise<void> => {
    const connection = await pool.connect();
    await fillTable(connection, table, insert, transfers).finally(() => connection.release());
  };
  await Promise.all([fill("sends", sends), fill("deliveries", deliveries), fill("commits", commits)]);
  for (const chainId of chainIds)
    await pool.query(
      `insert into cursors (chain_id, from_block, from_timestamp, to_block, final_to, observed_at, commits_to_block)
        values (${chainId}, 0, 0, ${transfers}, ${transfers}, ${Date.now()}, ${transfers})`,
    );
}

async function fillTable(
  connection: Awaited<ReturnType<PostgresPool["connect"]>>,
  table: string,
  insert: string,
  transfers: number,
): Promise<void> {
  const { rows: indexes } = await connection.query<{ readonly name: string; readonly definition: string }>(
    `select indexname as name, indexdef as definition from pg_indexes
      where schemaname = current_schema() and tablename = $1 and indexname not like '%_place'`,
    [table],
  );
  for (const { name } of indexes) await connection.query(`drop index ${name}`);
  for (let from = 1; from <= transfers; from += ROWS_PER_STATEMENT) {
    const to = Math.min(transfers, from + ROWS_PER_STATEMENT - 1);
    await connection.query(insert.replace("$series", `generate_series(${from}, ${to}) as i`));
  }
  await connection.query("set maintenance_work_mem = '512MB'");
  for (const { definition } of indexes) await connection.query(definition);
  await connection.query(`vacuum analyze ${table}`);
}
