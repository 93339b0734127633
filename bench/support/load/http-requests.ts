/** Requests of equal length that differ in one value. Keeps count, so that no run repeats the values of the one before. */
export interface HttpRequests {
  /** The bytes of each request before its value, as Latin-1. */
  readonly before: string;
  /** The bytes after it. */
  readonly after: string;
  /** A list that is used in turn, or the first of ascending numbers. */
  readonly values: number | readonly string[];
  /** Number of requests sent so far. */
  sent: number;
}

/** Stands for the value in a path or a body. */
export const VALUE = "{value}";

/** Describes GET requests. Without values, the path is that of all requests. */
export function describeGetRequests(path: string, values?: number | readonly string[]): HttpRequests {
  return describeRequests(buildGetRequest(path), values);
}

/** Describes POST requests whose body contains the value. */
export function describePostRequests(
  path: string,
  contentType: string,
  body: string,
  values: number | readonly string[],
): HttpRequests {
  const length = Buffer.byteLength(body) - VALUE.length + valueAt(values, 0).length;
  return describeRequests(
    `POST ${path} HTTP/1.1\r\nHost: bench\r\nContent-Type: ${contentType}\r\nContent-Length: ${length}\r\n\r\n${body}`,
    values,
  );
}

function describeRequests(request: string, values: number | readonly string[] = [""]): HttpRequests {
  const [before = "", after = ""] = request.split(VALUE);
  return { before, after, values, sent: 0 };
}

/** Builds a GET request, as Latin-1. */
export function buildGetRequest(path: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: bench\r\n\r\n`;
}

/** Builds the next of the requests. */
export function buildNextRequest(requests: HttpRequests): string {
  return requests.before + valueAt(requests.values, requests.sent++) + requests.after;
}

function valueAt(values: number | readonly string[], index: number): string {
  return typeof values === "number" ? String(values + index) : (values[index % values.length] ?? "");
}
