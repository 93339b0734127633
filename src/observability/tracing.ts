import { Code } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import {
  type Attributes,
  type Context,
  context,
  createContextKey,
  isSpanContextValid,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import { BridgeService } from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainEndpointRequest } from "../chain/chains.js";
import type { EndpointRequestObserver } from "../chain/endpoints/endpoint.js";
import type { AccessLogEntry, CallTracer, HttpResponse } from "../http/request/request-context.js";
import { readGetRoutes } from "../http/rest/get-routes.js";
import type { RouteCacheDeps } from "../quotes/state/route-cache.js";

// Spans of OpenTelemetry, through its API alone: what takes them and sends them is the SDK that the operator loads before
// the service. Where nobody wants spans nothing here is called.
//
// A span is a part of the one in which its work began, as long as that one goes on. So a read that several callers share
// is seen in the trace of the first of them, who would have made it alone; what goes on after that, such as the reads
// that keep facts fresh, has traces of its own, and looks at endpoints that nobody waits for have none.

export interface Tracing {
  readonly callTracer: CallTracer;
  readonly onEndpointRequest: EndpointRequestObserver<ChainEndpointRequest>;
  readonly onChainStateRead: NonNullable<RouteCacheDeps["onRead"]>;
  /** Whether an SDK is there that takes spans: without one they go nowhere. */
  isSdkRegistered(): boolean;
}

/** A span's work, also as the work begun in it sees it. */
interface SpanScope {
  isEnded: boolean;
}

const spanScopeKey = createContextKey("hop-gateway scope");
const ATTRIBUTE_PREFIX = "hop_gateway.";

/** Codes for which the service is to be blamed, or what it depends on. */
const serverErrorCodes: ReadonlySet<string> = new Set([
  "unknown",
  "deadline_exceeded",
  "internal",
  "unavailable",
  "data_loss",
]);
const knownHttpMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH"]);
const COPIED_LOG_FIELDS = ["network", "token", "route"] as const;

export function createTracing(version: string): Tracing {
  const tracer = trace.getTracer("hop-gateway", version);
  const service = BridgeService.typeName;
  const routes = new Map(readGetRoutes(BridgeService).map(({ method, path }) => [`${service}/${method.name}`, path]));

  function begin(name: string, options: SpanOptions, parent: Context) {
    const span = tracer.startSpan(name, options, parent);
    const scope: SpanScope = { isEnded: false };
    const within = trace.setSpan(parent, span).setValue(spanScopeKey, scope);
    return {
      span,
      run: <T>(work: () => T): T => context.with(within, work),
      /** The clock of the beginning, where that was given. */
      end(at?: number): void {
        scope.isEnded = true;
        span.end(at);
      },
    };
  }

  const callTracer: CallTracer = {
    startTrace({ operation, protocol, headers, startedAt }) {
      if (!operation.startsWith(`${service}/`)) return undefined;
      const attributes: Attributes = {
        "rpc.service": service,
        "rpc.method": operation.slice(service.length + 1),
        [`${ATTRIBUTE_PREFIX}protocol`]: protocol,
      };
      if (protocol === "rest") attributes["http.route"] = routes.get(operation) ?? "";
      else attributes["rpc.system"] = protocol.startsWith("connect") ? "connect_rpc" : "grpc";
      // Of what else may be active where bytes come in, none is a part of this call.
      const parent = propagation.extract(ROOT_CONTEXT, headers);
      const { span, run, end } = begin(operation, { kind: SpanKind.SERVER, startTime: startedAt, attributes }, parent);
      return {
        run,
        end(line, reason, res) {
          setResponseAttributes(span, line, reason, res);
          end(performance.now());
        },
      };
    },
  };

  return {
    callTracer,
    isSdkRegistered: () => isSpanContextValid(tracer.startSpan("never ended, and so never sent").spanContext()),
    onEndpointRequest({ network, chain, endpoint, method, calls: count }) {
      const active = context.active();
      if (!hasActiveSpan(active)) return () => {};
      const attributes = {
        "rpc.system": "jsonrpc",
        "rpc.method": method,
        [`${ATTRIBUTE_PREFIX}network`]: network,
        [`${ATTRIBUTE_PREFIX}chain`]: chain,
        [`${ATTRIBUTE_PREFIX}endpoint`]: endpoint,
        [`${ATTRIBUTE_PREFIX}calls`]: count,
      };
      const span = tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes }, active);
      return (outcome) => {
        span.setAttribute(`${ATTRIBUTE_PREFIX}outcome`, outcome);
        // That nobody waits any more is no error: another endpoint was quicker, or the caller left.
        if (outcome !== "ok" && outcome !== "aborted") markSpanFailed(span, outcome);
        span.end();
      };
    },
    onChainStateRead(network, { chain, readSetCount }, read) {
      const attributes = {
        [`${ATTRIBUTE_PREFIX}network`]: network,
        [`${ATTRIBUTE_PREFIX}chain`]: chain,
        [`${ATTRIBUTE_PREFIX}needs`]: readSetCount,
      };
      const active = context.active();
      const parent = hasActiveSpan(active) ? active : ROOT_CONTEXT;
      const { span, run, end } = begin("snapshot read", { kind: SpanKind.INTERNAL, attributes }, parent);
      return run(read)
        .catch((error: unknown) => {
          markSpanFailed(span, "read_failed");
          throw error;
        })
        .finally(() => end());
    },
  };
}

function hasActiveSpan(active: Context): boolean {
  const scope = active.getValue(spanScopeKey) as SpanScope | undefined;
  return scope?.isEnded === false;
}

/** Only what has a few values, and never what a caller or an upstream said. */
function setResponseAttributes(span: Span, line: AccessLogEntry, reason: string, res: HttpResponse | undefined): void {
  const { protocol, code } = line;
  span.setAttribute(`${ATTRIBUTE_PREFIX}request_id`, line.requestId);
  for (const name of COPIED_LOG_FIELDS)
    if (line[name] !== undefined) span.setAttribute(ATTRIBUTE_PREFIX + name, line[name]);
  if (reason !== "") span.setAttribute(`${ATTRIBUTE_PREFIX}reason`, reason);
  if (protocol === "rest") {
    const method = res?.req.method ?? "";
    span.setAttribute("http.request.method", knownHttpMethods.has(method) ? method : "_OTHER");
    if (res !== undefined) span.setAttribute("http.response.status_code", res.statusCode);
  } else if (protocol.startsWith("connect")) {
    if (code !== "ok") span.setAttribute("rpc.connect_rpc.error_code", code);
  } else span.setAttribute("rpc.grpc.status_code", code === "ok" ? 0 : (codeFromString(code) ?? Code.Unknown));
  if (serverErrorCodes.has(code) || reason === "OVERLOADED") markSpanFailed(span, reason || code);
}

function markSpanFailed(span: Span, type: string): void {
  span.setAttribute("error.type", type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
