import type { AnyDesc, DescFile } from "@bufbuild/protobuf";
import { getComments, getSyntaxComments } from "@bufbuild/protoplugin";

/** What the contract says of a thing, as Markdown and with fields under the names that they have in JSON. */
export function getComment(desc: Exclude<AnyDesc, DescFile>): string {
  return toMarkdown(getComments(desc).leading);
}

/** What a file says of itself, above its first line. */
export function getFileComment(file: DescFile): string {
  return toMarkdown(getSyntaxComments(file).leading);
}

/** The first sentence, without its full stop. */
export function firstSentence(text: string): string {
  return text.split(/\.(?:\s|$)/, 1)[0] ?? "";
}

function toMarkdown(comment = ""): string {
  const lines = comment
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => !line.startsWith("buf:lint:"));
  const paragraphs = lines
    .join("\n")
    .trim()
    .split(/\n{2,}/);
  return paragraphs.map((paragraph) => paragraph.replaceAll("\n", " ").replace(/`[^`\s]+`/g, toJsonName)).join("\n\n");
}

function toJsonName(quoted: string): string {
  return /^`[.a-z0-9_]+`$/.test(quoted) ? quoted.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()) : quoted;
}
