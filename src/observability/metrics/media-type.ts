/** Media type of the Prometheus text exposition format. */
export const PROMETHEUS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8";
