/** One end of a connection between the hub and a member. Messages arrive in order. */
export interface Channel<Outgoing, Incoming> {
  /** Returns false if the message is dropped: the other end is gone or does not read. */
  send(message: Outgoing): boolean;
  listen(onMessage: (message: Incoming) => void): void;
}

/** Messages from a member to the hub. */
export type ToHub =
  | { readonly type: "shared-state"; readonly kind: "pong" }
  | { readonly type: "shared-state"; readonly kind: "join"; readonly topic: string }
  | { readonly type: "shared-state"; readonly kind: "publish"; readonly topic: string; readonly text: string }
  | {
      readonly type: "shared-state";
      readonly kind: "request";
      readonly topic: string;
      readonly id: number;
      readonly text: string;
    }
  | { readonly type: "shared-state"; readonly kind: "reply"; readonly id: number; readonly text?: string | undefined };

/** Messages from the hub to a member. */
export type ToMember =
  | { readonly type: "shared-state"; readonly kind: "ping" }
  /** Says whether the member reads the topic for all. */
  | { readonly type: "shared-state"; readonly kind: "role"; readonly topic: string; readonly isReader: boolean }
  | { readonly type: "shared-state"; readonly kind: "publish"; readonly topic: string; readonly text: string }
  | {
      readonly type: "shared-state";
      readonly kind: "request";
      readonly topic: string;
      readonly id: number;
      readonly text: string;
    }
  /** Without text: the member has to read for itself. */
  | { readonly type: "shared-state"; readonly kind: "reply"; readonly id: number; readonly text?: string | undefined };

export type HubChannel = Channel<ToMember, ToHub>;
export type MemberChannel = Channel<ToHub, ToMember>;

/** Largest text of a message. The state of a chain with all its routes takes about a fiftieth. */
export const MAX_TEXT_CHARS = 1024 * 1024;
/** Characters that may wait to be written to a process that does not read. */
const MAX_BACKLOG_CHARS = 8 * 1024 * 1024;
/** What a message takes in addition to its text. */
const MESSAGE_OVERHEAD_CHARS = 512;

/**
 * Limits what waits to be written to another process: without a limit, a process that hangs would fill this one's memory.
 * @param write calls back when the message is written or has failed; may throw
 * @returns a function that returns false if a message is dropped
 */
export function limitBacklog<Message extends ToHub | ToMember>(
  write: (message: Message, onWritten: () => void) => void,
): (message: Message) => boolean {
  let backlogChars = 0;
  return (message) => {
    const textChars = "text" in message ? (message.text?.length ?? 0) : 0;
    if (textChars > MAX_TEXT_CHARS || backlogChars > MAX_BACKLOG_CHARS) return false;
    const chars = textChars + MESSAGE_OVERHEAD_CHARS;
    backlogChars += chars;
    let isPending = true;
    const onWritten = (): void => {
      if (isPending) backlogChars -= chars;
      isPending = false;
    };
    try {
      write(message, onWritten);
      return true;
    } catch {
      onWritten();
      return false;
    }
  };
}
