import type { PoolClient, QueryConfig } from "pg";
import { describe, expect, test } from "vitest";
import { createSessions } from "../../../../../../../src/transfers/index/store/postgres/connection/sessions.js";

const PROCESS_ID = 4711;
const CHECK = "select pg_backend_pid() as pid";

/** @param answers what the server says about itself, and the errors of prepared statements in their order */
function createConnection(answers: { readonly pid: number; readonly errors?: readonly string[] }) {
  const client = { processID: PROCESS_ID } as unknown as PoolClient;
  const errors = [...(answers.errors ?? [])];
  const sent: string[] = [];
  async function run<Row>({ text, name }: QueryConfig) {
    sent.push(name === undefined ? text : `${name}: ${text}`);
    const error = name === undefined ? undefined : errors.shift();
    if (error !== undefined) throw Object.assign(new Error("refused"), { code: error });
    return { command: "SELECT", rowCount: 1, rows: [{ pid: answers.pid }] as Row[] };
  }
  const sessions = createSessions();
  return { sent, query: () => sessions.query(client, run, { text: "select 1", name: "one" }) };
}

describe("named statements", () => {
  test("are prepared on a connection to the server itself, which is asked once", async () => {
    const { sent, query } = createConnection({ pid: PROCESS_ID });
    await query();
    await query();
    expect(sent).toEqual([CHECK, "one: select 1", "one: select 1"]);
  });

  test("are not prepared where another server answers than the one that was connected", async () => {
    const { sent, query } = createConnection({ pid: 12 });
    await query();
    await query();
    expect(sent).toEqual([CHECK, "select 1", "select 1"]);
  });

  test.each(["26000", "42P05", "0A000"])("are repeated, and prepared no longer, after error %s", async (code) => {
    const { sent, query } = createConnection({ pid: PROCESS_ID, errors: [code] });
    await query();
    await query();
    expect(sent).toEqual([CHECK, "one: select 1", "select 1", "select 1"]);
  });

  test("fail with every other error", async () => {
    const { sent, query } = createConnection({ pid: PROCESS_ID, errors: ["57014"] });
    await expect(query()).rejects.toMatchObject({ code: "57014" });
    await query();
    expect(sent).toEqual([CHECK, "one: select 1", "one: select 1"]);
  });
});
