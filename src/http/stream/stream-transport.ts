import type { Message } from "@bufbuild/protobuf";

/** How a stream ends. */
export type StreamOutcome =
  | { readonly kind: "complete" }
  /** The caller is to resume it. */
  | { readonly kind: "interrupted" }
  | { readonly kind: "failed"; readonly error: unknown };

/** Sends the messages of one stream in the form of its protocol. */
export interface StreamTransport {
  /**
   * Writes a message and returns the bytes that it takes until `onFlushed` is called: when the caller's connection has
   * taken them. Throws if the message does not serialise.
   */
  write(message: Message, onFlushed: () => void): number;
  /** Ends the response. Called once. */
  finish(outcome: StreamOutcome): void;
}
