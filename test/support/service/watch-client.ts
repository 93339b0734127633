// Reads watches of transfers over Server-Sent Events.

/** An event of a watch. */
export interface WatchEvent {
  readonly event: string;
  readonly id: string;
  readonly data: { readonly state?: string; readonly transferId?: string; readonly isFinal?: boolean };
}

/** Opens a watch; `next` returns its events one after the other, undefined at its end. */
export async function openWatch(url: string, query: string, lastEventId = "") {
  const closing = new AbortController();
  const headers = lastEventId === "" ? undefined : { "last-event-id": lastEventId };
  const response = await fetch(`${url}/v1/transfers:watch?${query}`, {
    signal: closing.signal,
    ...(headers === undefined ? {} : { headers }),
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  async function next(): Promise<WatchEvent | undefined> {
    for (;;) {
      const end = text.indexOf("\n\n");
      if (end >= 0) {
        const lines = text.slice(0, end).split("\n");
        text = text.slice(end + 2);
        const fields = new Map(lines.map((line) => line.split(/: (.*)/, 2) as [string, string]));
        const event = fields.get("event");
        if (event !== undefined)
          return { event, id: fields.get("id") ?? "", data: JSON.parse(fields.get("data") ?? "{}") };
        continue;
      }
      const chunk = await reader?.read();
      if (chunk === undefined || chunk.done) return undefined;
      text += chunk.value;
    }
  }
  return { status: response.status, response, next, close: () => closing.abort() };
}

/** Returns the next event that is no bookmark. */
export async function nextState(watch: Awaited<ReturnType<typeof openWatch>>): Promise<WatchEvent | undefined> {
  for (;;) {
    const event = await watch.next();
    if (event?.event !== "bookmark") return event;
  }
}
