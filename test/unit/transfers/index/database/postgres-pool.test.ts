import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, test } from "vitest";
import { openPostgresPool } from "../../../../../src/transfers/index/database/postgres-pool.js";
import { closeAfterTest } from "../../../../support/close-after-test.js";

/** Formats a message of PostgreSQL's protocol (https://www.postgresql.org/docs/current/protocol-message-formats.html). */
function formatMessage(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(length.length + body.length);
  return Buffer.concat([Buffer.from(type), length, body]);
}

const AUTHENTICATION_OK = formatMessage("R", Buffer.alloc(4));
const READY_FOR_QUERY = formatMessage("Z", Buffer.from("I"));
const SHUTTING_DOWN = formatMessage("E", Buffer.from("SFATAL\0C57P01\0Mterminating connection\0\0"));

test("survives a server that ends a connection in the read that completes it", async () => {
  const server = closeAfterTest(
    createServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.end(Buffer.concat([AUTHENTICATION_OK, READY_FOR_QUERY, SHUTTING_DOWN])));
    }),
  );
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const codes: string[] = [];
  const pool = await openPostgresPool(
    {
      ...{ host: "127.0.0.1", port, database: "hop", user: "hop", password: undefined },
      ...{ sslMode: "disable", sslRootCertificate: undefined },
    },
    { maxConnections: 1, responseTimeoutMs: 60_000, onFailure: ({ code }) => codes.push(code) },
  );
  // An error that nobody handles would fail the run.
  await expect(pool.query("select 1")).rejects.toMatchObject({ isUnavailable: true });
  expect(codes).toHaveLength(1);
  await pool.end();
});
