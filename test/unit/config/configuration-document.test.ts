import { readFileSync, writeFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { ENVIRONMENT_VARIABLES } from "../../../src/config/environment-table.js";
import { getNetwork } from "../../../src/hop/networks.js";

// `npm run docs:configuration` rewrites the table of docs/configuration.md; without UPDATE_DOCS it is only compared.

const file = new URL("../../../docs/configuration.md", import.meta.url);
const GENERATED_PART = /(<!-- variables: [^\n]*-->\n).*?(\n<!-- \/variables -->)/s;

const expectedTable = [
  "| variable | default | meaning |",
  "|---|---|---|",
  ...ENVIRONMENT_VARIABLES.map(
    ({ name, defaultText, description }) => `| \`${name}\` | ${defaultText} | ${description} |`,
  ),
].join("\n");

const readDocument = (): string => readFileSync(file, "utf8");

beforeAll(() => {
  if (process.env.UPDATE_DOCS === undefined) return;
  const updated = readDocument().replace(
    GENERATED_PART,
    (_, start: string, end: string) => `${start}${expectedTable}${end}`,
  );
  writeFileSync(file, updated);
});

test("docs/configuration.md contains the table of variables", () => {
  expect(readDocument()).toMatch(GENERATED_PART);
  expect(readDocument()).toContain(`-->\n${expectedTable}\n<!-- /variables -->`);
});

test("docs/configuration.md names every chain", () => {
  const [, remainder = ""] = readDocument().split("<!-- /variables -->");
  const named = [...remainder.matchAll(/`([A-Z]+)`/g)].map(([, name]) => name);
  expect(new Set(named)).toEqual(new Set([...getNetwork("mainnet").chains.keys()].map((slug) => slug.toUpperCase())));
});
