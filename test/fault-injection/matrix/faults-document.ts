import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// docs/internals/faults.md shows the outcomes that the tests check, with measured times. `UPDATE_FAULTS=1` rewrites its tables.

const path = fileURLToPath(new URL("../../../docs/internals/faults.md", import.meta.url));
export const isUpdatingDocument = process.env.UPDATE_FAULTS === "1";

/** A table whose cells may contain a measured time, such as `0.4 s`. */
export type Table = readonly (readonly string[])[];

/** Reads the table between the marks of a name, without its times. */
export function readTable(name: string): Table {
  const [, between = ""] = readFileSync(path, "utf8").split(tableMarker(name));
  const lines = between.split("\n").filter((line) => line.startsWith("|") && !line.startsWith("|-"));
  return stripTimes(lines.map((line) => line.split("|").slice(1, -1)));
}

export function stripTimes(table: Table): Table {
  return table.map((row) => row.map((cell) => cell.replace(/ ?[0-9]+\.[0-9] s/g, "").trim()));
}

export function writeTable(name: string, [head = [], ...rows]: Table): void {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const table = [line(head), `|${head.map(() => "---|").join("")}`, ...rows.map(line)].join("\n");
  const [before = "", , after = ""] = readFileSync(path, "utf8").split(tableMarker(name));
  const mark = tableMarker(name);
  writeFileSync(path, `${before}${mark}\n${table}\n${mark}${after}`);
}

/** @param ms undefined: not measured */
export function formatSeconds(ms: number | undefined): string {
  return ms === undefined ? "" : ` ${(Math.ceil(ms / 100) / 10).toFixed(1)} s`;
}

function tableMarker(name: string): string {
  return `<!-- ${name} -->`;
}
