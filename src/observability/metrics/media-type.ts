/** Of metrics as Prometheus reads them. */
export const metricsType = "text/plain; version=0.0.4; charset=utf-8";
