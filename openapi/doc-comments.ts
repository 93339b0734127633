import type { AnyDesc, DescFile } from "@bufbuild/protobuf";
import { getComments, getSyntaxComments } from "@bufbuild/protoplugin";

/** Returns the comment above a declaration as Markdown, with field names in their JSON form. */
export function getComment(desc: Exclude<AnyDesc, DescFile>): string {
  return toMarkdown(getComments(desc).leading);
}

/** Returns the comment above the first line of a file. */
export function getFileComment(file: DescFile): string {
  return toMarkdown(getSyntaxComments(file).leading);
}

/** Returns the first sentence, without its full stop. */
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
