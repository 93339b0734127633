import { describe, expect, test } from "vitest";
import { parsePostgresUrl } from "../../../../../src/transfers/index/database/postgres-location.js";

const remote = {
  host: "db.example.com",
  port: 5432,
  database: "hop",
  user: "gateway",
  password: "p@ss/word",
  sslMode: "verify-full",
  sslRootCertificate: undefined,
};

describe("the URL of PostgreSQL", () => {
  test.each([
    ["postgres://gateway:p%40ss%2Fword@db.example.com/hop?sslmode=verify-full", remote],
    ["postgresql://gateway:p%40ss%2Fword@db.example.com:5432/hop?sslmode=verify-full", remote],
    [
      "postgres://gateway@db.example.com:6432/hop?sslmode=verify-ca&sslrootcert=/etc/ca.pem",
      { ...remote, port: 6432, password: undefined, sslMode: "verify-ca", sslRootCertificate: "/etc/ca.pem" },
    ],
    ["postgres://gateway:p%40ss%2Fword@127.0.0.1/hop", { ...remote, host: "127.0.0.1", sslMode: "disable" }],
    ["postgres://gateway:p%40ss%2Fword@[::1]/hop", { ...remote, host: "::1", sslMode: "disable" }],
    [
      "postgres://gateway:p%40ss%2Fword@localhost/hop?host=/run/postgresql",
      { ...remote, host: "/run/postgresql", sslMode: "disable" },
    ],
  ])("%s is read", (text, location) => {
    expect(parsePostgresUrl(text)).toEqual(location);
  });

  test.each([
    // A password must not be sent in the clear because nobody thought of it.
    "postgres://gateway:secret@db.example.com/hop",
    "postgres://gateway:secret@db.example.com/hop?sslmode=prefer",
    "postgres://gateway:secret@db.example.com/hop?sslmode=require&options=-c%20x",
    "postgres://gateway:secret@db.example.com/?sslmode=require",
    "postgres://db.example.com/hop?sslmode=require",
    "postgres://gateway:%E0%A4@localhost/hop",
    "postgres://gateway@localhost:99999/hop",
    "mysql://gateway@localhost/hop",
    "postgres:hop",
    "",
  ])("%j is refused", (text) => {
    expect(parsePostgresUrl(text)).toBeUndefined();
  });
});
