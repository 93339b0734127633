import type { Config } from "../config/config.js";
import { DEFAULT_METRICS_PORT } from "../config/environment-table.js";
import type { DynamicDocument } from "../http/documents.js";
import type { Logger } from "../observability/log.js";
import { createMetricsListener } from "../observability/metrics/metrics-listener.js";
import { DIFFERENCES_PATH, type RecentDifferences } from "./shadow-comparison/recent-differences.js";
import { StartupError } from "./startup/startup-error.js";

/** The listener of metrics, liveness and quotes that differ from the SDK's, on the configured address. */
export interface ConfiguredMetricsListener {
  /**
   * Returns the URL of the metrics. If the default port is taken, a free one is used, with a warning.
   * @throws StartupError if the configured address cannot be bound
   */
  listen(): Promise<string>;
  close(): Promise<void>;
}

export interface MetricsListenerParts {
  readonly config: Pick<Config, "metricsHost" | "metricsPort">;
  readonly logger: Pick<Logger, "warn">;
  readonly readMetrics: () => Promise<DynamicDocument>;
  readonly readLiveness: () => DynamicDocument | Promise<DynamicDocument>;
  readonly differences: Pick<RecentDifferences, "readDocument">;
}

/** Returns undefined if the metrics are served on the main port. */
export function composeMetricsListener({
  config: { metricsHost: host, metricsPort },
  logger,
  readMetrics,
  readLiveness,
  differences,
}: MetricsListenerParts): ConfiguredMetricsListener | undefined {
  if (metricsPort === "same") return undefined;
  const listener = createMetricsListener({
    host,
    documents: new Map([
      ["/metrics", readMetrics],
      ["/livez", readLiveness],
      [DIFFERENCES_PATH, differences.readDocument],
    ]),
  });

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
    async listen() {
      try {
        return await (metricsPort === undefined ? listenOnDefaultPort() : listener.listen(metricsPort));
      } catch (error) {
        throw new StartupError(
          `the metrics cannot be served on the address of METRICS_HOST and METRICS_PORT: ${(error as Error).message}`,
        );
      }
    },
    close: () => listener.close(),
  };
}
