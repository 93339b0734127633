import { unescape as decode } from "node:querystring";

interface RequestTarget {
  readonly url: string;
  readonly headers: { readonly authorization?: string };
}

/** Moves user and password of a URL to an Authorization header, because HTTP clients do not send them from the URL. */
export function extractBasicAuth(text: string): RequestTarget {
  const url = new URL(text);
  const { username, password } = url;
  if (username === "" && password === "") return { url: text, headers: {} };
  url.username = "";
  url.password = "";
  const userInfo = `${decode(username)}:${decode(password)}`;
  return { url: url.href, headers: { authorization: `Basic ${Buffer.from(userInfo).toString("base64")}` } };
}
