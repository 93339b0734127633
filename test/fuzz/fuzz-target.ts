import { expect, inject } from "vitest";
import { createHttpConnections } from "../support/service/http-connections.js";
import { findOutputProblems } from "../support/service/response-invariants.js";
import { type ServiceProcess, startServiceProcess } from "../support/service/service-process.js";

/** The service that is fuzzed, with checks of its health. */
export interface FuzzTarget extends ServiceProcess {
  /** Sends two valid requests on new connections; throws unless both responses are correct. */
  expectHealthy(): Promise<void>;
  /** Stops the service and checks its exit code and its output. */
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
      const connections = createHttpConnections(service.port);
      try {
        for (const isHttp2 of [false, true]) {
          const target = "/v1/available-routes?token=HOP&fromChain=base";
          const response = await connections.send({ isHttp2, method: "GET", target, headers: [], body: undefined });
          if (response.kind !== "answer") throw new Error(`no response to a valid request: ${response.kind}`);
          const routes = JSON.parse(response.body.toString()) as { sourceChainSlug: string }[];
          expect(new Set(routes.map(({ sourceChainSlug }) => sourceChainSlug))).toEqual(new Set(["base"]));
        }
      } finally {
        connections.close();
      }
    },
    async expectCleanExit() {
      service.signal("SIGTERM");
      expect(await service.exitCode).toBe(0);
      expect(findOutputProblems(service.output()).slice(0, 5)).toEqual([]);
    },
  };
}

/** Returns the seeded transfers that a gateway finds. */
export function listKnownTransfers(): readonly { readonly transferId: string; readonly transactionHash: string }[] {
  return inject("network").transfers.filter(({ expectedState }) => expectedState !== "NOT_FOUND");
}
