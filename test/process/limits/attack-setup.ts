import { afterEach, beforeAll } from "vitest";
import {
  type AttackedChains,
  type ChainBehaviour,
  startAttackedChains,
} from "../../support/attacks/attacked-chains.js";
import { type AttackedService, startAttackedService } from "../../support/attacks/attacked-service.js";
import { buildService } from "../../support/service/build-service.js";

/** Builds the service before the tests of a file, and returns functions that start what stops after each test. */
export function setUpAttacks() {
  let main: string;
  const stops: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    main = await buildService();
  });
  afterEach(async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  });
  return {
    async startChains(behaviour: Partial<ChainBehaviour> = {}): Promise<AttackedChains> {
      const chains = await startAttackedChains(behaviour);
      stops.push(chains.close);
      return chains;
    },
    async startService(chains: AttackedChains): Promise<AttackedService> {
      const service = await startAttackedService(main, chains.environment);
      stops.push(service.stop);
      return service;
    },
  };
}
