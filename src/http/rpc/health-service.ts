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
import type { ServerStreamOperation } from "./server-stream.js";

export interface HealthService {
  readonly check: Operation<
    MessageShape<typeof HealthCheckRequestSchema>,
    MessageShape<typeof HealthCheckResponseSchema>
  >;
  readonly watch: MethodImpl<(typeof Health)["method"]["watch"]>;
  /** The same as `watch`, for the fast path. */
  readonly watchStream: ServerStreamOperation<
    MessageShape<typeof HealthCheckRequestSchema>,
    MessageShape<typeof HealthCheckResponseSchema>
  >;
}

/** Creates the gRPC health service: every service is SERVING until the server drains. */
export function createHealthService(serviceNames: readonly string[], draining: AbortSignal): HealthService {
  // The empty name stands for the server as a whole.
  const serviceNameSet = new Set(["", ...serviceNames]);
  /** Ends each watch when the server drains. */
  const openWatches = new Set<() => void>();
  draining.addEventListener("abort", () => {
    for (const endWatch of [...openWatches]) endWatch();
  });
  const getStatus = () => (draining.aborted ? Status.NOT_SERVING : Status.SERVING);
  return {
    async check({ service }) {
      if (!serviceNameSet.has(service)) throw new ConnectError("unknown service", Code.NotFound);
      return create(HealthCheckResponseSchema, { status: getStatus() });
    },
    watchStream({ service }, stream) {
      const isServed = serviceNameSet.has(service);
      const initial = getStatus();
      const send = (status: Status) => stream.send(create(HealthCheckResponseSchema, { status }));
      function endWatch(): void {
        if (isServed && initial === Status.SERVING) send(Status.NOT_SERVING);
        stream.end();
      }
      send(isServed ? initial : Status.SERVICE_UNKNOWN);
      if (draining.aborted) stream.end();
      else openWatches.add(endWatch);
      return () => openWatches.delete(endWatch);
    },
    async *watch({ service }, { signal }) {
      const isServed = serviceNameSet.has(service);
      const initial = getStatus();
      yield { status: isServed ? initial : Status.SERVICE_UNKNOWN };
      await waitForAnyAbort(draining, signal);
      if (isServed && draining.aborted && initial === Status.SERVING) yield { status: Status.NOT_SERVING };
      // The deadline has expired, or the caller is gone.
      if (!draining.aborted) signal.throwIfAborted();
    },
  };
}

/** Not AbortSignal.any: a signal as old as the process would keep every signal that it was ever combined with. */
function waitForAnyAbort(...signals: AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    const onAbort = (): void => {
      for (const signal of signals) signal.removeEventListener("abort", onAbort);
      resolve();
    };
    for (const signal of signals) signal.addEventListener("abort", onAbort);
    if (signals.some(({ aborted }) => aborted)) onAbort();
  });
}
