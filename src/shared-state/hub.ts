import type { HubChannel, ToHub } from "./channel.js";

/** Chooses the reader of each topic among the members, and passes messages between them. Knows no values. */
export interface SharedStateHub {
  /**
   * Adds a member. Returns a function that removes it, after which others take over its topics.
   * @param onSuspend called when others take over because it does not respond
   */
  addMember(channel: HubChannel, onSuspend?: () => void): () => void;
  close(): void;
}

export interface SharedStateHubOptions {
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  /** Observes what members publish. May throw for a message that it does not understand. */
  readonly onPublish?: (topic: string, text: string) => void;
}

interface Member {
  readonly channel: HubChannel;
  readonly onSuspend: (() => void) | undefined;
  /** When its last message arrived. */
  seenAt: number;
  /** False until its first message: a process that starts may take longer than one that is expected to respond. */
  isResponsive: boolean;
}

interface Topic {
  readonly members: Set<Member>;
  reader: Member | undefined;
}

/** A request that the reader has not answered. */
interface PendingRequest {
  readonly topic: string;
  readonly text: string;
  readonly from: Member;
  /** The requester's id of it. */
  readonly id: number;
  readonly receivedAt: number;
  reader: Member;
}

export const PING_INTERVAL_MS = 250;
/** A member that has sent nothing for this long does not read for the others: its event loop hangs. */
export const UNRESPONSIVE_MS = 1_000;
/** When a request is forgotten; its requester has given up before. */
const REQUEST_EXPIRY_MS = 10_000;
/** A topic for each chain, document and kind; the names are fixed. */
const MAX_TOPICS = 256;

export function createSharedStateHub({ now, onPublish }: SharedStateHubOptions): SharedStateHub {
  const members = new Set<Member>();
  const topics = new Map<string, Topic>();
  const requests = new Map<number, PendingRequest>();
  const last = { requestId: 0, tickAt: now() };
  const timer = setInterval(tick, PING_INTERVAL_MS).unref();

  function tick(): void {
    const time = now();
    const isLate = time - last.tickAt > 2 * PING_INTERVAL_MS;
    last.tickAt = time;
    for (const member of members) {
      // After a pause of this process, the replies to earlier pings still wait to be read.
      if (!isLate && member.isResponsive && time - member.seenAt > UNRESPONSIVE_MS) suspend(member);
      member.channel.send({ type: "shared-state", kind: "ping" });
    }
    for (const [id, { receivedAt }] of requests) if (time - receivedAt > REQUEST_EXPIRY_MS) requests.delete(id);
  }

  function suspend(member: Member): void {
    member.isResponsive = false;
    member.onSuspend?.();
    releaseTopics(member);
  }

  function resume(member: Member): void {
    member.isResponsive = true;
    for (const [name, topic] of topics)
      if (topic.reader === undefined && topic.members.has(member)) appointReader(name, topic);
  }

  /** Lets other members take over what a member reads, and the requests that it has not answered. */
  function releaseTopics(member: Member): void {
    for (const [name, topic] of topics) {
      if (topic.reader !== member) continue;
      if (members.has(member))
        member.channel.send({ type: "shared-state", kind: "role", topic: name, isReader: false });
      appointReader(name, topic);
    }
    for (const [requestId, request] of requests) if (request.reader === member) forward(requestId, request);
  }

  /** Appoints the responsive member that reads the fewest topics. */
  function appointReader(name: string, topic: Topic): void {
    const candidates = [...topic.members].filter(({ isResponsive }) => isResponsive);
    const loads = new Map(candidates.map((candidate) => [candidate, countTopicsOf(candidate)]));
    topic.reader = candidates.sort((a, b) => (loads.get(a) ?? 0) - (loads.get(b) ?? 0))[0];
    topic.reader?.channel.send({ type: "shared-state", kind: "role", topic: name, isReader: true });
  }

  function countTopicsOf(member: Member): number {
    return [...topics.values()].filter(({ reader }) => reader === member).length;
  }

  function join(member: Member, name: string): void {
    const topic = topics.get(name) ?? { members: new Set(), reader: undefined };
    if (topics.size >= MAX_TOPICS && !topics.has(name)) return;
    topics.set(name, topic);
    topic.members.add(member);
    if (topic.reader === undefined) appointReader(name, topic);
  }

  /** Passes a request to the topic's reader, or tells the requester that it has to read for itself. */
  function forward(requestId: number, request: PendingRequest): void {
    const { topic, text, from } = request;
    const reader = topics.get(topic)?.reader;
    const isSent =
      reader !== undefined &&
      reader !== from &&
      reader.channel.send({ type: "shared-state", kind: "request", topic, id: requestId, text });
    if (isSent) {
      request.reader = reader;
      requests.set(requestId, request);
    } else {
      requests.delete(requestId);
      from.channel.send({ type: "shared-state", kind: "reply", id: request.id });
    }
  }

  function observePublish(topic: string, text: string): void {
    try {
      onPublish?.(topic, text);
    } catch {
      // An error here would end the primary. The members refuse the message themselves.
    }
  }

  function receive(member: Member, message: ToHub): void {
    member.seenAt = now();
    if (!member.isResponsive) resume(member);
    switch (message.kind) {
      case "join":
        join(member, message.topic);
        break;
      case "publish":
        observePublish(message.topic, message.text);
        for (const other of topics.get(message.topic)?.members ?? [])
          if (other !== member && other.isResponsive) other.channel.send(message);
        break;
      case "request": {
        const { topic, id, text } = message;
        last.requestId += 1;
        forward(last.requestId, { topic, text, from: member, id, receivedAt: now(), reader: member });
        break;
      }
      case "reply": {
        const request = requests.get(message.id);
        if (request?.reader !== member) break;
        requests.delete(message.id);
        request.from.channel.send({ ...message, id: request.id });
      }
    }
  }

  return {
    addMember(channel, onSuspend) {
      const member: Member = { channel, onSuspend, seenAt: now(), isResponsive: false };
      members.add(member);
      channel.listen((message) => receive(member, message));
      channel.send({ type: "shared-state", kind: "ping" });
      return () => {
        members.delete(member);
        for (const { members: topicMembers } of topics.values()) topicMembers.delete(member);
        for (const [id, { from }] of requests) if (from === member) requests.delete(id);
        releaseTopics(member);
      };
    },
    close: () => clearInterval(timer),
  };
}
