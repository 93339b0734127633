import { parseRedisUrl, type RedisTarget } from "../shared-state/redis/protocol/redis-url.js";
import { createVariable } from "./environment-variable.js";

/** Shorter keys could be guessed from what is signed with them. */
const MIN_KEY_CHARS = 16;

/** The part of the environment table about what replicas share. */
export const sharedStateVariables = {
  /** undefined: replicas share nothing. Contains a password: never log it. */
  sharedState: createVariable<RedisTarget | undefined>(
    {
      name: "SHARED_STATE",
      defaultValue: undefined,
      defaultText: "`off`",
      description:
        "`redis://[[user]:password@]host[:port][/database]`, or `rediss://` for TLS: share chain state, documents, final statuses, limits per caller and budgets with the other replicas; see [Replicas](operating.md#replicas)",
    },
    "off or redis[s]://[[user]:password@]host[:port][/database]",
    (text) => {
      const target = text === "off" ? undefined : parseRedisUrl(text);
      return target !== undefined || text === "off" ? { value: target } : undefined;
    },
  ),
  /** undefined: the password of Redis. Secret: never log it. */
  sharedStateKey: createVariable<string | undefined>(
    {
      name: "SHARED_STATE_KEY",
      defaultValue: undefined,
      defaultText: "the password in `SHARED_STATE`",
      description: `secret text of at least ${MIN_KEY_CHARS} characters, the same for all replicas: signs what they share, so that not even Redis can change it`,
    },
    `a text of at least ${MIN_KEY_CHARS} characters`,
    (text) => (text.length >= MIN_KEY_CHARS ? { value: text } : undefined),
  ),
};
