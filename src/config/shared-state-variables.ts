import { createVariable } from "./environment-variable.js";

/** The part of the environment table about what processes share. */
export const sharedStateVariables = {
  /** undefined: this process shares nothing. Contains a password: never log it. */
  sharedStateUrl: createVariable<string | undefined>(
    {
      name: "SHARED_STATE",
      defaultValue: undefined,
      defaultText: "`off`",
      description:
        "`redis://[[user]:password@]host[:port][/database]`, or `rediss://` for TLS: share chain state, documents, final statuses and limits per caller with other replicas and workers; see [Sharing through Redis](scaling.md#sharing-through-redis)",
    },
    "off or redis[s]://[[user]:password@]host[:port][/database]",
    (text) => {
      if (text === "off") return { value: undefined };
      return isRedisUrl(text) ? { value: text } : undefined;
    },
  ),
};

function isRedisUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, pathname, search, hash } = new URL(text);
  const hasOptions = search !== "" || hash !== "";
  // Options that are ignored would seem to work.
  return /^rediss?:$/.test(protocol) && hostname !== "" && /^\/?[0-9]{0,4}$/.test(pathname) && !hasOptions;
}
