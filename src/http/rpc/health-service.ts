import type { MessageShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type HealthCheckRequestSchema,
  HealthCheckResponseSchema,
  HealthCheckResponse_ServingStatus as Status,
} from "../../../gen/grpc/health/v1/health_pb.js";
import type { Operation, StreamOperation } from "../../operations/operation.js";

type Request = MessageShape<typeof HealthCheckRequestSchema>;
type Response = MessageShape<typeof HealthCheckResponseSchema>;

export interface HealthService {
  readonly check: Operation<Request, Response>;
  readonly watch: StreamOperation<Request, Response>;
}

/** Creates the gRPC health service: every service is SERVING until the server drains. */
export function createHealthService(serviceNames: readonly string[], draining: AbortSignal): HealthService {
  // The empty name stands for the server as a whole.
  const serviceNameSet = new Set(["", ...serviceNames]);
  const getStatus = () => (draining.aborted ? Status.NOT_SERVING : Status.SERVING);
  return {
    async check({ service }) {
      if (!serviceNameSet.has(service)) throw new ConnectError("unknown service", Code.NotFound);
      return create(HealthCheckResponseSchema, { status: getStatus() });
    },
    watch({ service }, stream) {
      const initial = serviceNameSet.has(service) ? getStatus() : Status.SERVICE_UNKNOWN;
      const send = (status: Status) => stream.send(create(HealthCheckResponseSchema, { status }));
      send(initial);
      return {
        onReady() {},
        onDrain() {
          if (initial === Status.SERVING) send(Status.NOT_SERVING);
          stream.end();
        },
        onEnd() {},
      };
    },
  };
}
