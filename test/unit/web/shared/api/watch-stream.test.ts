import { beforeEach, expect, test, vi } from "vitest";
import { followStream, type StreamState, type WatchOptions } from "../../../../../web/shared/api/watch-stream.js";

type Listener = Parameters<ReturnType<WatchOptions["openStream"]>["addEventListener"]>[1];

/** An EventSource without a network. */
class FakeSource {
  readyState = 0;
  private readonly listeners = new Map<string, Listener>();
  addEventListener(name: string, listener: Listener): void {
    this.listeners.set(name, listener);
  }
  open(): void {
    this.readyState = 1;
    this.listeners.get("open")?.({});
  }
  /** @param readyState 0: it reconnects; 2: it gives up, as after any status but 200 */
  fail(readyState: 0 | 2): void {
    this.readyState = readyState;
    this.listeners.get("error")?.({});
  }
  send(name: string, data: unknown): void {
    this.listeners.get(name)?.({ data: JSON.stringify(data) });
  }
  close(): void {
    this.readyState = 2;
  }
}

class FakePage {
  private hidden = false;
  private readonly listeners = new Set<() => void>();
  isHidden = (): boolean => this.hidden;
  onChange = (listener: () => void, signal: AbortSignal): void => {
    this.listeners.add(listener);
    signal.addEventListener("abort", () => this.listeners.delete(listener));
  };
  setHidden(hidden: boolean): void {
    this.hidden = hidden;
    for (const listener of this.listeners) listener();
  }
}

function watch() {
  const sources: FakeSource[] = [];
  const states: StreamState[] = [];
  const received: unknown[] = [];
  const page = new FakePage();
  const closing = new AbortController();
  followStream({
    signal: closing.signal,
    openStream() {
      const source = new FakeSource();
      sources.push(source);
      return source;
    },
    visibility: page,
    handlers: {
      onState: (state) => states.push(state),
      onTransfer: ({ state }) => received.push(state),
      onUnknown: ({ isFinal }) => received.push(isFinal),
      onFailure: ({ message }) => received.push(message),
    },
  });
  const last = (): FakeSource => {
    const source = sources.at(-1);
    if (source === undefined) throw new Error("no stream was opened");
    return source;
  };
  return { sources, states, received, page, closing, last };
}

beforeEach(() => vi.useFakeTimers());

test("reads the events of a stream and closes it after its end", () => {
  const { sources, states, received, last } = watch();
  last().open();
  last().send("unknown", { isFinal: false });
  last().send("transfer", { state: "PENDING" });
  last().send("failure", { message: "no" });
  last().send("end", {});
  expect(received).toEqual([false, "PENDING", "no"]);
  expect(states).toEqual(["connecting", "live", "ended"]);
  expect(last().readyState).toBe(2);
  vi.advanceTimersByTime(3_600_000);
  expect(sources).toHaveLength(1);
});

test("leaves a lost connection to EventSource, which resumes by itself", () => {
  const { sources, states, last } = watch();
  last().open();
  last().fail(0);
  last().open();
  expect(states).toEqual(["connecting", "live", "lost", "live"]);
  expect(sources).toHaveLength(1);
});

test("reports a first stream that is refused and does not try again", () => {
  const { sources, states, last } = watch();
  last().fail(2);
  vi.advanceTimersByTime(3_600_000);
  expect(states).toEqual(["connecting", "refused"]);
  expect(sources).toHaveLength(1);
});

test("tries three times again after a refused reconnection, then reports it", () => {
  const { sources, states, last } = watch();
  last().open();
  last().send("bookmark", {});
  for (const [delayMs, opened] of [
    [1_000, 2],
    [4_000, 3],
    [15_000, 4],
  ] as const) {
    last().fail(2);
    vi.advanceTimersByTime(delayMs - 1);
    expect(sources).toHaveLength(opened - 1);
    vi.advanceTimersByTime(1);
    expect(sources).toHaveLength(opened);
  }
  last().fail(2);
  vi.advanceTimersByTime(3_600_000);
  expect(states).toEqual(["connecting", "live", "lost", "lost", "lost", "refused"]);
  expect(sources).toHaveLength(4);
});

test("opens a connection anew that is silent for 45 seconds", () => {
  const { sources, states, last } = watch();
  last().open();
  vi.advanceTimersByTime(44_000);
  last().send("bookmark", {});
  vi.advanceTimersByTime(44_999);
  expect(sources).toHaveLength(1);
  vi.advanceTimersByTime(1);
  expect(sources).toHaveLength(2);
  expect(sources[0]?.readyState).toBe(2);
  expect(states).toEqual(["connecting", "live", "lost"]);
});

test("has no stream while the page is hidden", () => {
  const { sources, states, page, last } = watch();
  last().open();
  last().send("bookmark", {});
  page.setHidden(true);
  expect(last().readyState).toBe(2);
  vi.advanceTimersByTime(3_600_000);
  expect(sources).toHaveLength(1);
  page.setHidden(false);
  expect(sources).toHaveLength(2);
  last().open();
  expect(states).toEqual(["connecting", "live", "connecting", "live"]);
});

test("ends for good when the signal aborts", () => {
  const { sources, closing, page, last } = watch();
  last().open();
  closing.abort();
  expect(last().readyState).toBe(2);
  page.setHidden(true);
  page.setHidden(false);
  vi.advanceTimersByTime(3_600_000);
  expect(sources).toHaveLength(1);
});
