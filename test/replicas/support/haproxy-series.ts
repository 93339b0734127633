/** The metrics of HAProxy that alerts and dashboard use, with their labels. */
export const HAPROXY_SERIES: ReadonlyMap<string, readonly string[]> = new Map([
  ["haproxy_backend_connection_errors_total", ["proxy"]],
  ["haproxy_backend_current_sessions", ["proxy"]],
  ["haproxy_backend_redispatch_warnings_total", ["proxy"]],
  ["haproxy_frontend_http_responses_total", ["proxy", "code"]],
  ["haproxy_process_current_connections", []],
  ["haproxy_process_max_connections", []],
  ["haproxy_server_http_responses_total", ["proxy", "server", "code"]],
  ["haproxy_server_status", ["proxy", "server", "state"]],
]);
