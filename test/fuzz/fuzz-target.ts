import { expect, inject } from "vitest";
import { createCallers } from "../support/service/http-connections.js";
import { wrongInOutput } from "../support/service/response-invariants.js";
import { type Service, startService } from "../support/service/service-process.js";

/** The service under attack, with what it must still be able to do. */
export interface Attacked extends Service {
  /** Asks two right questions as a new caller; throws unless both answers are right. */
  expectWell(): Promise<void>;
  /** Ends the service and checks what is left to check: how it ended, and all that it wrote. */
  expectGoodEnd(): Promise<void>;
}

export async function startAttacked(
  command: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Attacked> {
  const service = await startService(command, environment);
  return {
    ...service,
    async expectWell() {
      if (!service.isRunning()) throw new Error(`the service has ended: ${service.output().stderr}`);
      const callers = createCallers(service.port);
      try {
        for (const isHttp2 of [false, true]) {
          const target = "/v1/available-routes?token=HOP&fromChain=base";
          const answer = await callers.ask({ isHttp2, method: "GET", target, headers: [], body: undefined });
          if (answer.kind !== "answer") throw new Error(`a right request is not answered: ${answer.kind}`);
          const routes = JSON.parse(answer.body.toString()) as { sourceChainSlug: string }[];
          expect(new Set(routes.map(({ sourceChainSlug }) => sourceChainSlug))).toEqual(new Set(["base"]));
        }
      } finally {
        callers.close();
      }
    },
    async expectGoodEnd() {
      service.signal("SIGTERM");
      expect(await service.ended).toBe(0);
      expect(wrongInOutput(service.output()).slice(0, 5)).toEqual([]);
    },
  };
}

/** The seeded transfers that a gateway finds. */
export function knownTransfers(): readonly { readonly transferId: string; readonly transactionHash: string }[] {
  return inject("network").transfers.filter(({ expectedState }) => expectedState !== "NOT_FOUND");
}
