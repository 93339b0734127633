import { readBody, sendJson, startHttpStub } from "../../support/stubs/http-stub.js";
import { type ProxiedCall, parseCalls } from "../../support/stubs/rpc-messages.js";

/** Asks the honest node. */
export type AskNode = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** What the proxy says instead; undefined: the truth. */
export type LyingAnswer = { readonly result: unknown } | { readonly error: unknown } | undefined;

/** Tells a well-formed lie about some calls. */
export type TellLie = (call: ProxiedCall, truth: unknown, ask: AskNode) => LyingAnswer | Promise<LyingAnswer>;

export interface LyingProxy {
  readonly url: string;
  /** Sets the lie; undefined: it is honest. */
  setLie(lie: TellLie | undefined): void;
  close(): Promise<void>;
}

/** Starts a proxy in front of a node. */
export async function startLyingProxy(target: string): Promise<LyingProxy> {
  let lie: TellLie | undefined;

  async function forward(body: string): Promise<unknown> {
    const response = await fetch(target, { method: "POST", headers: { "content-type": "application/json" }, body });
    return response.json();
  }

  const ask: AskNode = async (method, params) => {
    const { result } = (await forward(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }))) as {
      result: unknown;
    };
    return result;
  };

  async function answer(body: string): Promise<unknown> {
    const message: unknown = JSON.parse(body);
    const truth = await forward(body);
    if (lie === undefined) return truth;
    const members = [truth].flat() as { readonly id: unknown; readonly result?: unknown }[];
    const calls = new Map(parseCalls(message).map((call) => [call.id, call]));
    const answers = members.map(async (member) => {
      const call = calls.get(member.id);
      const said = call && (await lie?.(call, member.result, ask));
      return said === undefined ? member : { jsonrpc: "2.0", id: member.id, ...said };
    });
    const all = await Promise.all(answers);
    return Array.isArray(message) ? all : all[0];
  }

  const stub = await startHttpStub((request, response) => {
    readBody(request)
      .then(async (body) => sendJson(response, await answer(body)))
      .catch(() => response.destroy());
  });
  return {
    url: stub.url,
    setLie(next) {
      lie = next;
    },
    close: stub.close,
  };
}
