// Writes a page of docs/ as a page of the service: `node packaging/guide.js <Markdown> <HTML>`, a step of
// packaging/build.js. Knows the Markdown that docs/integrate.md uses: headings, paragraphs, lists, code and links.
import { readFileSync, writeFileSync } from "node:fs";

const [, , source, target] = process.argv;
const escapeHtml = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const markdown = readFileSync(source, "utf8");
// Even elements are text, odd ones are code with the name of its language.
const body = markdown.split(/^```(.*\n[\s\S]*?)^```\n/m).flatMap((part, index) => {
  if (index % 2 === 0) return part.split(/\n{2,}/).map(renderBlock);
  const code = part.slice(part.indexOf("\n") + 1);
  return `<pre tabindex="0"><code>${escapeHtml(code)}</code></pre>`;
});
const [, title] = /^# (.*)/.exec(markdown) ?? [];
// The page has the header of /docs.
const [header] = /<header[\s\S]*<\/header>/.exec(
  readFileSync(new URL("../web/static/docs.html", import.meta.url), "utf8"),
);
const ownHeader = header
  .replace(' aria-current="page"', "")
  .replace(/href="\/docs\/integrate"/, '$& aria-current="page"');

writeFileSync(
  target,
  `<!doctype html>
<html lang="en" data-theme="auto">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <meta name="color-scheme" content="light dark" />
    <title>hop-gateway: ${escapeHtml(title)}</title>
    <link rel="icon" href="/assets/icon.svg" type="image/svg+xml" />
    <link rel="stylesheet" href="/assets/theme.css" />
    <link rel="stylesheet" href="/assets/page.css" />
    <link rel="stylesheet" href="/assets/guide.css" />
    <script type="module" src="/assets/guide.js"></script>
  </head>
  <body>
    ${ownHeader}
    <main>
${body.filter((block) => block !== "").join("\n")}
    </main>
  </body>
</html>
`,
);

function renderBlock(text) {
  const block = text.trim();
  const [, marks, heading] = /^(#+) (.*)$/.exec(block) ?? [];
  if (marks !== undefined) return `<h${marks.length}>${renderInline(heading)}</h${marks.length}>`;
  if (!block.startsWith("- ")) return block === "" ? "" : `<p>${renderInline(block)}</p>`;
  const items = block.slice(2).split(/\n- /);
  return `<ul>${items.map((item) => `<li>${renderInline(item)}</li>`).join("")}</ul>`;
}

/** The service has no other page of docs/: what links to one is text. */
function renderInline(text) {
  return escapeHtml(text)
    .replace(/`([^`]+)`/g, "<code>$1</code>")
    .replace(/\[([^\]]+)\]\((https?:[^)]+)\)/g, '<a href="$2">$1</a>')
    .replace(/\[([^\]]+)\]\([^)]+\)/g, "$1");
}
