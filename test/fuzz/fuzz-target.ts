import { expect, inject } from "vitest";
import { createHttpConnections } from "../support/service/http-connections.js";
import { findOutputProblems } from "../support/service/response-invariants.js";
import { type ServiceProcess, startServiceProcess } from "../support/service/service-process.js";

/** The service under attack, with what it must still be able to do. */
export interface FuzzTarget extends ServiceProcess {
  /** Asks two right questions as a new caller; throws unless both answers are right. */
  expectHealthy(): Promise<void>;
  /** Ends the service and checks what is left to check: how it ended, and all that it wrote. */
  expectCleanExit(): Promise<void>;
}

export async function startFuzzTarget(
  command: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<FuzzTarget> {
  const service = await startServiceProcess(command, environment);
  return {
    ...service,
    async expectHealthy() {
      if (!service.isRunning()) throw new Error(`the service has ended: ${service.output().stderr}`);
      const callers = createHttpConnections(service.port);
      try {
        for (const isHttp2 of [false, true]) {
          const target = "/v1/available-routes?token=HOP&fromChain=base";
          const answer = await callers.send({ isHttp2, method: "GET", target, headers: [], body: undefined });
          if (answer.kind !== "answer") throw new Error(`a right request is not answered: ${answer.kind}`);
          const routes = JSON.parse(answer.body.toString()) as { sourceChainSlug: string }[];
          expect(new Set(routes.map(({ sourceChainSlug }) => sourceChainSlug))).toEqual(new Set(["base"]));
        }
      } finally {
        callers.close();
      }
    },
    async expectCleanExit() {
      service.signal("SIGTERM");
      expect(await service.exitCode).toBe(0);
      expect(findOutputProblems(service.output()).slice(0, 5)).toEqual([]);
    },
  };
}

/** The seeded transfers that a gateway finds. */
export function listKnownTransfers(): readonly { readonly transferId: string; readonly transactionHash: string }[] {
  return inject("network").transfers.filter(({ expectedState }) => expectedState !== "NOT_FOUND");
}
