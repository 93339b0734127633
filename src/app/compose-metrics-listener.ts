import type { Config } from "../config/config.js";
import { DEFAULT_METRICS_PORT } from "../config/environment-table.js";
import type { DynamicDocument } from "../http/documents.js";
import type { Logger } from "../observability/log.js";
import { MetricsListener } from "../observability/metrics/metrics-listener.js";
import { describeListenError, StartupError } from "./process-lifecycle.js";

/** Returns the listener of metrics and liveness on the configured address; undefined if they are served on the main port. */
export function composeMetricsListener({
  config: { metricsHost: host, metricsPort },
  logger,
  readMetrics,
  readLiveness,
}: {
  readonly config: Pick<Config, "metricsHost" | "metricsPort">;
  readonly logger: Pick<Logger, "warn">;
  readonly readMetrics: () => Promise<DynamicDocument>;
  readonly readLiveness: () => DynamicDocument | Promise<DynamicDocument>;
}) {
  if (metricsPort === "same") return undefined;
  const listener = new MetricsListener(
    host,
    new Map([
      ["/metrics", readMetrics],
      ["/livez", readLiveness],
    ]),
  );

  async function listenOnDefaultPort(): Promise<string> {
    try {
      return await listener.listen(DEFAULT_METRICS_PORT);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
      const url = await listener.listen(0);
      logger.warn({ takenPort: DEFAULT_METRICS_PORT, url }, "default port of the metrics is taken; using a free port");
      return url;
    }
  }

  return {
    /**
     * Returns the URL of the metrics. If the default port is taken, a free one is used, with a warning.
     * @throws StartupError if the configured address cannot be bound
     */
    async listen(): Promise<string> {
      try {
        return await (metricsPort === undefined ? listenOnDefaultPort() : listener.listen(metricsPort));
      } catch (error) {
        const reason = describeListenError(error as Error, { host: "METRICS_HOST", port: "METRICS_PORT" });
        throw new StartupError(`the metrics cannot be served: ${reason}`);
      }
    },
    close: (): Promise<void> => listener.close(),
  };
}
