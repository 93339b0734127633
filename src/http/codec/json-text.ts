/** Matches texts that JSON holds without an escape: printable ASCII but for the quote and the backslash. */
export const UNESCAPED_JSON_TEXT = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;

/** Returns a string as a JSON literal. Skips `JSON.stringify` where nothing needs an escape. */
export function printJsonString(text: string): string {
  return UNESCAPED_JSON_TEXT.test(text) ? `"${text}"` : JSON.stringify(text);
}
