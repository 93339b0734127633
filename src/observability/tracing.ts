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
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { BridgeService } from "../../gen/hop/bridge/v1/bridge_pb.js";
import type { ChainEndpointRequest } from "../chain/chains.js";
import type { EndpointRequestObserver } from "../chain/endpoints/endpoint.js";
import type { AccessLogEntry, HttpResponse, RequestTracer } from "../http/request/request-context.js";
import { readGetRoutes } from "../http/rest/annotations.js";
import type { RouteCacheDeps } from "../quotes/state/route-cache.js";

// Creates OpenTelemetry spans through the API package only: the operator loads an SDK, which records and exports them,
// before the service. This module is not loaded when tracing is disabled.
//
// A span is a child of the span that was active when its work began, as long as that span has not ended. A read that
// several callers share therefore appears in the trace of the first caller, who would have needed it anyway. Work that
// continues after its span, such as the periodic refresh of chain state, starts traces of its own; background probes of
// endpoints are not traced.

/** Key of whether the span within which work began has ended. */
const spanScopeKey = createContextKey("hop-gateway scope");
const SERVICE = BridgeService.typeName;
const ATTRIBUTE_PREFIX = "hop_gateway.";

/** Codes of failures of the service or its upstreams, in contrast to errors of the caller. */
const SERVER_ERROR_CODES: ReadonlySet<string> = new Set([
  "unknown",
  "deadline_exceeded",
  "internal",
  "unavailable",
  "data_loss",
]);
const KNOWN_HTTP_METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH"]);
/** Log fields that become span attributes. */
const COPIED_LOG_FIELDS = ["network", "token", "route"] as const;

/** Creates the spans of this process. */
export class Tracing {
  readonly #tracer: Tracer;
  readonly #httpRoutes: ReadonlyMap<string, string>;

  constructor(version: string) {
    this.#tracer = trace.getTracer("hop-gateway", version);
    this.#httpRoutes = new Map(
      readGetRoutes(BridgeService).map(({ method, path }) => [`${SERVICE}/${method.name}`, path]),
    );
  }

  readonly callTracer: RequestTracer = {
    startTrace: ({ operation, protocol, headers, startedAt }) => {
      if (!operation.startsWith(`${SERVICE}/`)) return undefined;
      const attributes: Attributes = {
        "rpc.service": SERVICE,
        "rpc.method": operation.slice(SERVICE.length + 1),
        [`${ATTRIBUTE_PREFIX}protocol`]: protocol,
      };
      if (protocol === "rest") attributes["http.route"] = this.#httpRoutes.get(operation) ?? "";
      else attributes["rpc.system"] = protocol.startsWith("connect") ? "connect_rpc" : "grpc";
      // Only the caller's headers name the parent: whatever is active on the connection belongs to another request.
      const parent = propagation.extract(ROOT_CONTEXT, headers);
      const options = { kind: SpanKind.SERVER, startTime: startedAt, attributes };
      const { span, run, end } = this.#beginSpan(operation, options, parent);
      return {
        run,
        end(entry, reason, res) {
          setResponseAttributes(span, entry, reason, res);
          end(performance.now());
        },
      };
    },
  };

  readonly onEndpointRequest: EndpointRequestObserver<ChainEndpointRequest> = (request) => {
    const { network, chain, endpoint, method, calls } = request;
    const active = context.active();
    if (!hasActiveSpan(active)) return () => {};
    const attributes = {
      "rpc.system": "jsonrpc",
      "rpc.method": method,
      [`${ATTRIBUTE_PREFIX}network`]: network,
      [`${ATTRIBUTE_PREFIX}chain`]: chain,
      [`${ATTRIBUTE_PREFIX}endpoint`]: endpoint,
      [`${ATTRIBUTE_PREFIX}calls`]: calls,
    };
    const span = this.#tracer.startSpan(method, { kind: SpanKind.CLIENT, attributes }, active);
    return (outcome) => {
      span.setAttribute(`${ATTRIBUTE_PREFIX}outcome`, outcome);
      // An aborted request is no error: another endpoint was faster, or the caller left.
      if (outcome !== "ok" && outcome !== "aborted") markSpanFailed(span, outcome);
      span.end();
    };
  };

  readonly onChainStateRead: NonNullable<RouteCacheDeps["onRead"]> = (network, { chain, readSetCount }, read) => {
    const attributes = {
      [`${ATTRIBUTE_PREFIX}network`]: network,
      [`${ATTRIBUTE_PREFIX}chain`]: chain,
      [`${ATTRIBUTE_PREFIX}read_sets`]: readSetCount,
    };
    const active = context.active();
    const parent = hasActiveSpan(active) ? active : ROOT_CONTEXT;
    const { span, run, end } = this.#beginSpan("chain state read", { kind: SpanKind.INTERNAL, attributes }, parent);
    return run(read)
      .catch((error: unknown) => {
        markSpanFailed(span, "read_failed");
        throw error;
      })
      .finally(() => end());
  };

  /** Returns whether an SDK is registered: without one, spans are not recorded. */
  isSdkRegistered(): boolean {
    return isSpanContextValid(this.#tracer.startSpan("never ended, therefore never exported").spanContext());
  }

  #beginSpan(name: string, options: SpanOptions, parent: Context) {
    const span = this.#tracer.startSpan(name, options, parent);
    const scope = { isEnded: false };
    const spanContext = trace.setSpan(parent, span).setValue(spanScopeKey, scope);
    return {
      span,
      run: <T>(work: () => T): T => context.with(spanContext, work),
      /** @param endTime on the clock of the start time, if that was given */
      end(endTime?: number): void {
        scope.isEnded = true;
        span.end(endTime);
      },
    };
  }
}

function hasActiveSpan(active: Context): boolean {
  const scope = active.getValue(spanScopeKey) as { readonly isEnded: boolean } | undefined;
  return scope?.isEnded === false;
}

/** Sets only attributes with few distinct values, and never text from a caller or an upstream. */
function setResponseAttributes(span: Span, entry: AccessLogEntry, reason: string, res: HttpResponse | undefined): void {
  const { protocol, code, fields = {} } = entry;
  span.setAttribute(`${ATTRIBUTE_PREFIX}request_id`, entry.requestId);
  for (const name of COPIED_LOG_FIELDS)
    if (fields[name] !== undefined) span.setAttribute(ATTRIBUTE_PREFIX + name, fields[name]);
  if (reason !== "") span.setAttribute(`${ATTRIBUTE_PREFIX}reason`, reason);
  if (protocol === "rest") {
    const method = res?.req.method ?? "";
    span.setAttribute("http.request.method", KNOWN_HTTP_METHODS.has(method) ? method : "_OTHER");
    if (res !== undefined) span.setAttribute("http.response.status_code", res.statusCode);
  } else if (protocol.startsWith("connect")) {
    if (code !== "ok") span.setAttribute("rpc.connect_rpc.error_code", code);
  } else span.setAttribute("rpc.grpc.status_code", code === "ok" ? 0 : (codeFromString(code) ?? Code.Unknown));
  if (SERVER_ERROR_CODES.has(code) || reason === "OVERLOADED") markSpanFailed(span, reason || code);
}

function markSpanFailed(span: Span, errorType: string): void {
  span.setAttribute("error.type", errorType);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
