import type { MessageShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type MethodImpl } from "@connectrpc/connect";
import {
  type Health,
  type HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/grpc/health/v1/health_pb.js";
import type { Operation } from "../../operations/operation.js";

export interface HealthService {
  readonly check: Operation<
    MessageShape<typeof HealthCheckRequestSchema>,
    MessageShape<typeof HealthCheckResponseSchema>
  >;
  readonly watch: MethodImpl<(typeof Health)["method"]["watch"]>;
}

/** gRPC health checking: every service here is well until the server drains. */
export function createHealthService(serviceNames: readonly string[], draining: AbortSignal): HealthService {
  // The empty name is the server as a whole.
  const known = new Set(["", ...serviceNames]);
  const now = () => (draining.aborted ? Status.NOT_SERVING : Status.SERVING);
  return {
    async check({ service }) {
      if (!known.has(service)) throw new ConnectError("unknown service", Code.NotFound);
      return create(HealthCheckResponseSchema, { status: now() });
    },
    async *watch({ service }, { signal }) {
      const isKnown = known.has(service);
      const first = now();
      yield { status: isKnown ? first : Status.SERVICE_UNKNOWN };
      await waitForAnyAbort(draining, signal);
      if (isKnown && draining.aborted && first === Status.SERVING) yield { status: Status.NOT_SERVING };
      // The caller's deadline has passed, or the caller is gone.
      if (!draining.aborted) signal.throwIfAborted();
    },
  };
}

/** Not by AbortSignal.any: a signal that lives as long as the process would keep all that it was ever joined with. */
function waitForAnyAbort(...signals: AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      for (const signal of signals) signal.removeEventListener("abort", done);
      resolve();
    };
    for (const signal of signals) signal.addEventListener("abort", done);
    if (signals.some(({ aborted }) => aborted)) done();
  });
}
