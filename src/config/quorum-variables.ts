import { createIntegerVariable, createVariable } from "./environment-variable.js";

/** The part of the environment table about reads that several RPC endpoints have to confirm. */
export const quorumVariables = {
  /** 1: one endpoint is believed. */
  rpcQuorum: createIntegerVariable(
    {
      name: "RPC_QUORUM",
      defaultValue: 1,
      description:
        "how many endpoints of a mainnet chain have to agree about what quotes, statuses and the index are made of; each chain needs as many, better one more; costs as many times the calls",
    },
    { min: 1, max: 10 },
  ),
  /** Share of reads that are compared in the background, 0 to 1; without a quorum only. */
  rpcQuorumRate: createVariable(
    {
      name: "RPC_QUORUM_RATE",
      defaultValue: 0,
      description:
        "with `RPC_QUORUM=1`: share of reads (`0` to `1`) that are repeated at all endpoints of their chain in the background; who contradicts the majority is reported",
    },
    "a number from 0 to 1",
    (text) => (/^(?:0|1|0?\.[0-9]{1,9}|1\.0+)$/.test(text) ? { value: Number(text) } : undefined),
  ),
};
