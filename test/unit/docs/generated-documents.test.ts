import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { printScaling } from "../../../bench/support/scaling-model.js";
import { LIMITS } from "../../../src/app/limits-table.js";
import { ENVIRONMENT_VARIABLES } from "../../../src/config/environment-table.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { metricCatalogue } from "../../../src/observability/metrics/catalogue.js";

// `npm run docs:configuration` rewrites the generated parts; without UPDATE_DOCS they are only compared.

const variables = [
  "| variable | default | meaning |",
  "|---|---|---|",
  ...ENVIRONMENT_VARIABLES.map(
    ({ name, defaultText, description }) => `| \`${name}\` | ${defaultText} | ${description} |`,
  ),
].join("\n");

const limits = LIMITS.map(({ title, limits: rows }) =>
  [
    `## ${title}`,
    "",
    "| what | limit | beyond the limit | metric |",
    "|---|---|---|---|",
    ...rows.map(({ name, value, effect, metrics = [] }) => {
      const names = metrics.map((metric) => `\`${metric.replaceAll("|", "\\|")}\``);
      return `| ${name} | ${value} | ${effect} | ${names.join(", ")} |`;
    }),
  ].join("\n"),
).join("\n\n");

describe.each([
  ["docs/configuration.md", "variables", variables],
  ["docs/limits.md", "limits", limits],
  ["docs/scaling.md", "inputs", printScaling().inputs],
  ["docs/scaling.md", "bills", printScaling().bills],
])("%s", (path, part, expected) => {
  test(`contains the generated ${part}`, () => {
    const file = new URL(`../../../${path}`, import.meta.url);
    const pattern = new RegExp(`(<!-- ${part}: [^\\n]*-->\\n).*?(<!-- /${part} -->)`, "s");
    if (process.env.UPDATE_DOCS !== undefined) {
      const update = (_: string, start: string, end: string): string => `${start}${expected}\n${end}`;
      writeFileSync(file, readFileSync(file, "utf8").replace(pattern, update));
    }
    const [, found] =
      new RegExp(`<!-- ${part}: [^\\n]*-->\\n(.*?)\\n<!-- /${part} -->`, "s").exec(readFileSync(file, "utf8")) ?? [];
    expect(found).toBe(expected);
  });
});

test("the table of limits begins with the ten that callers meet, has at most 45 rows, and names metrics that exist", () => {
  const rows = LIMITS.flatMap((group) => group.limits);
  expect(LIMITS[0]?.limits).toHaveLength(10);
  expect(rows.length).toBeLessThanOrEqual(45);
  expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length);
  const known = new Set(Object.values(metricCatalogue).map(({ name }) => name));
  const named = rows.flatMap(({ metrics = [] }) => metrics.map((metric) => metric.replace(/\{.*/, "")));
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

test("docs/configuration.md names every chain", () => {
  const document = readFileSync(new URL("../../../docs/configuration.md", import.meta.url), "utf8");
  const [, remainder = ""] = document.split("<!-- /variables -->");
  const named = [...remainder.matchAll(/`([A-Z]+)`/g)].map(([, name]) => name);
  expect(new Set(named)).toEqual(new Set([...getNetwork("mainnet").chains.keys()].map((slug) => slug.toUpperCase())));
});
