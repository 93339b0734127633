import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { ErrorReason } from "../../../src/errors.js";
import { STATUS_BY_REASON, toCodeName, toHelpUrl, toHttpStatus } from "../../../src/http/request/error-mapping.js";

const page = readFileSync(new URL("../../../docs/errors.md", import.meta.url), "utf8");
const reasons = Object.keys(STATUS_BY_REASON) as ErrorReason[];

test("docs/errors.md has the code and the HTTP status of each reason", () => {
  const rows = [...page.matchAll(/^\| (\[`.+) \| (\w+) \| (\d{3})\b.*\|$/gm)].flatMap(([, cell = "", code, status]) =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, reason]) => [reason, code, Number(status)]),
  );
  expect(rows).toEqual(reasons.map((reason) => [reason, toCodeName(reason), toHttpStatus(reason)]));
});

test("docs/errors.md has a section for each reason, at the anchor that errors link to", () => {
  const sections = [...page.matchAll(/^### (.+)\n\n(\S.*)/gm)].map(([, heading = ""]) => heading);
  expect(sections).toEqual(expect.arrayContaining(reasons));
  expect(sections).toHaveLength(reasons.length);
  // The anchors that GitHub and most generators make of headings.
  const anchors = sections.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\w -]/g, "")
      .replaceAll(" ", "-"),
  );
  for (const reason of reasons)
    expect(anchors).toContain(new URL(toHelpUrl(reason, "https://docs.example")).hash.slice(1));
});
