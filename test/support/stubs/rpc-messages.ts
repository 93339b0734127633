// JSON-RPC messages, as proxies of nodes read and change them.

/** One JSON-RPC call, alone or in a batch. */
export interface ProxiedCall {
  readonly method: string;
  readonly params: readonly unknown[];
}

/** What a node without batches answers to one. */
export const BATCH_ERROR = { jsonrpc: "2.0", id: null, error: { code: -32600, message: "batches are not served" } };

/** Parses a body; undefined if it is not JSON. */
export function parseJson(body: string): unknown {
  try {
    return JSON.parse(body) as unknown;
  } catch {
    return undefined;
  }
}

type IdentifiedCall = ProxiedCall & { readonly id: unknown };

/** Returns the calls of a message or a batch. */
export function parseCalls(message: unknown): IdentifiedCall[] {
  if (message === undefined) return [];
  const members = (Array.isArray(message) ? message : [message]) as {
    id: unknown;
    method: string;
    params?: unknown[];
  }[];
  return members.map(({ id, method, params = [] }) => ({ id, method, params }));
}

/** Replaces later blocks in a message by the head. */
export function clampBlocks(head: number, message: unknown): unknown {
  const latest = `0x${Math.max(head, 0).toString(16)}`;
  const clamp = (param: unknown): unknown => {
    if (param === "latest") return latest;
    const { toBlock } = (param ?? {}) as { toBlock?: string };
    if (toBlock === undefined) return param;
    const isLater = !toBlock.startsWith("0x") || Number(toBlock) > head;
    return isLater ? { ...(param as object), toBlock: latest } : param;
  };
  const change = (call: { params?: unknown[] }): unknown => ({ ...call, params: (call.params ?? []).map(clamp) });
  return Array.isArray(message) ? message.map(change) : change(message as { params?: unknown[] });
}

/** Returns the replacement of a call's result; undefined: the result is kept. */
export type ReplaceResult = (
  call: ProxiedCall,
  result: unknown,
) => { readonly result: unknown } | { readonly error: unknown } | undefined;

/** Replaces members of a node's response. */
export function replaceResults(text: string, message: unknown, change: ReplaceResult): string {
  const calls = new Map(parseCalls(message).map((call) => [call.id, call]));
  const parsed = JSON.parse(text) as RpcResponseMember | RpcResponseMember[];
  const replace = (member: RpcResponseMember): unknown => {
    const call = calls.get(member.id);
    const changed = call && change(call, member.result);
    return changed === undefined ? member : { jsonrpc: "2.0", id: member.id, ...changed };
  };
  return JSON.stringify(Array.isArray(parsed) ? parsed.map(replace) : replace(parsed));
}

interface RpcResponseMember {
  readonly id: unknown;
  readonly result?: unknown;
}
