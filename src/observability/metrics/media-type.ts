/** Of metrics as Prometheus reads them. */
export const PROMETHEUS_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8";
