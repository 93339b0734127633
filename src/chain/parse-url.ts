/**
 * Returns the parsed URL, or undefined when the text is none.
 *
 * Replaces `URL.canParse`, which Node.js 20 answers wrongly: after some thousand calls the optimized form takes a text
 * with a letter of Latin-1 (`https://bücher.example.org/`) for invalid.
 */
export function parseUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns a URL to which paths are appended: http or https, without a user, a query, a fragment or a slash at the end, and in
 * ASCII, so that it fits into a header. Returns undefined when the text is none.
 */
export function parseBaseUrl(text: string): string | undefined {
  const url = parseUrl(text);
  if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined;
  // The parts that are empty are in the text all the same: `http://host?`.
  if (url.username !== "" || url.password !== "" || /[?#]/.test(url.href)) return undefined;
  return url.href.replace(/\/+$/, "");
}
