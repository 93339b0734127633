/**
 * What the processes of one service share: of each topic, one of them, the reader, reads the values for all. Messages are
 * text and may be lost; a process that gets no answer in time reads for itself. No call throws or waits longer than a
 * transport's limit.
 */
export interface SharedState {
  /** Takes part in a topic from now on. Each topic is joined once. */
  join(topic: string, handlers: TopicHandlers): SharedTopic;
  readonly clock: SharedClock;
  /** Calls back whenever this process becomes the reader of a topic. */
  observeReader(onBecomeReader: (topic: string) => void): void;
  stats(): SharedStateStats;
}

export interface TopicHandlers {
  /** Takes a value that another process has read. May throw for a message that it does not understand. */
  onPublished(message: string): void;
  /** Answers another process, in the reader. Undefined or an error: that process reads for itself. */
  onRequest(message: string): Promise<string | undefined>;
  /** Called when this process becomes the reader. */
  onBecomeReader(): void;
}

export interface SharedTopic {
  /** Returns whether this process reads the topic for all. Becomes false by itself when the others are out of reach. */
  isReader(): boolean;
  /** Hands a value that this process has read to all others. Also useful from a process that is not the reader. */
  publish(message: string): void;
  /**
   * Asks the reader. Resolves to undefined, mostly at once, if this process has to read for itself.
   * @param timeoutMs how long a reader that responds may take. Default: 2 s
   */
  request(message: string, timeoutMs?: number): Promise<string | undefined>;
}

/** Converts times, in milliseconds, between the monotonic clock of this process and the clock that all processes share. */
export interface SharedClock {
  toShared(monotonicMs: number): number;
  toMonotonic(sharedMs: number): number;
}

export interface SharedStateStats {
  /** The topics in which this process takes part. */
  readonly topics: readonly string[];
  /** Those that it reads for all. */
  readonly readTopics: readonly string[];
  /** The number of messages by what became of them. */
  readonly messages: Readonly<Record<SharedStateEvent, number>>;
}

/**
 * - published, received: values handed to and taken from other processes
 * - answered, unanswered: requests to the reader; without an answer this process has read for itself
 * - dropped: messages beyond a limit, or not understood
 */
export type SharedStateEvent = "published" | "received" | "answered" | "unanswered" | "dropped";
