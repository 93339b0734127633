import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServerProcess, findFreePort, giveFolder, type ServerProcess } from "./server-process.js";
import { findServerUser, haproxyProgram } from "./server-programs.js";

// From the test and from the compiled bench alike: both run in the project's folder.
const CONFIGURATION = join(process.cwd(), "deploy/haproxy/haproxy.cfg");

/** HAProxy in front of three replicas, as deployed. */
export interface Haproxy extends ServerProcess {
  readonly url: string;
  /** Returns which replicas get requests. */
  readUp(): Promise<readonly boolean[]>;
  /** Returns all metrics in the text format of Prometheus. */
  readMetrics(): Promise<string>;
  /** Returns the value of one of HAProxy's metrics, summed over its labels. */
  readMetric(name: string, labels?: string): Promise<number>;
  close(): Promise<void>;
}

/** @param ports of the replicas on 127.0.0.1. @param maxConnections takes twice as many open files */
export async function startHaproxy(ports: readonly [number, number, number], maxConnections = 2_000): Promise<Haproxy> {
  const user = findServerUser("haproxy");
  const folder = await mkdtemp(join(tmpdir(), "hop-haproxy-"));
  await giveFolder(folder, user);
  const [port, metricsPort] = [await findFreePort(), await findFreePort()];
  const env: NodeJS.ProcessEnv = {
    LISTEN: `127.0.0.1:${port}`,
    METRICS_LISTEN: `127.0.0.1:${metricsPort}`,
    MAX_CONNECTIONS: `${maxConnections}`,
  };
  for (const [index, replica] of ports.entries()) env[`GATEWAY_${index + 1}`] = `127.0.0.1:${replica}`;

  const readMetrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();

  async function readMetric(name: string, labels = ""): Promise<number> {
    const lines = (await readMetrics())
      .split("\n")
      .filter((line) => line.startsWith(`${name}{`) && line.includes(labels));
    return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  }

  const server = createServerProcess({
    command: haproxyProgram ?? "",
    args: ["-db", "-f", CONFIGURATION],
    user,
    env,
    logFile: join(folder, "log"),
    probe: () => readMetric("haproxy_process_uptime_seconds"),
  });
  await server.start();
  return {
    ...server,
    url: `http://127.0.0.1:${port}`,
    readMetrics,
    readMetric,
    readUp: () =>
      Promise.all(
        ports.map(async (_, index) => {
          const labels = `proxy="requests",server="gateway-${index + 1}",state="UP"`;
          return (await readMetric("haproxy_server_status", labels)) === 1;
        }),
      ),
    async close() {
      await server.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
