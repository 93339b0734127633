import { buildPath } from "./build-path.js";
import { followStream, type PageVisibility, type WatchHandlers } from "./watch-stream.js";

/**
 * Watches transfers, as {@link followStream} says.
 * @param query parameters of `/v1/transfers:watch`
 */
export function openWatch(query: Readonly<Record<string, string>>, handlers: WatchHandlers, signal: AbortSignal): void {
  const openStream = () => new EventSource(buildPath("/v1/transfers:watch", query));
  followStream({ openStream, visibility, handlers, signal });
}

const visibility: PageVisibility = {
  isHidden: () => document.hidden,
  onChange: (listener, signal) => document.addEventListener("visibilitychange", listener, { signal }),
};
