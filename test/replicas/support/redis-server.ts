import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@redis/client";
import { OPERATOR_KEY } from "../../support/service/planted-keys.js";
import { createServerProcess, findFreePort, giveFolder, type ServerProcess } from "./server-process.js";
import { findServerUser, redisProgram } from "./server-programs.js";

/** The password of the default user. All output of the services is searched for it. */
export const REDIS_PASSWORD = OPERATOR_KEY;

/** A Redis server that keeps everything in memory. */
export interface RedisServer extends ServerProcess {
  readonly port: number;
  readonly url: string;
  /** Sends a command to the server over a connection of its own. Rejects with the error of Redis. */
  command(...args: readonly string[]): Promise<unknown>;
  /** Stops the server and removes its folder. */
  close(): Promise<void>;
}

export async function startRedis(settings: readonly string[] = []): Promise<RedisServer> {
  const user = findServerUser("redis");
  const folder = await mkdtemp(join(tmpdir(), "hop-redis-"));
  await giveFolder(folder, user);
  const port = await findFreePort();
  const command = (...args: readonly string[]): Promise<unknown> => sendCommand(port, args);
  const options = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"];
  const server = createServerProcess({
    command: redisProgram ?? "",
    args: [...options, "--requirepass", REDIS_PASSWORD, ...settings],
    user,
    logFile: join(folder, "log"),
    probe: () => command("PING"),
  });
  await server.start();
  return {
    ...server,
    port,
    url: `redis://:${REDIS_PASSWORD}@127.0.0.1:${port}`,
    command,
    async close() {
      await server.kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function sendCommand(port: number, args: readonly string[]): Promise<unknown> {
  const client = createClient({
    url: `redis://:${REDIS_PASSWORD}@127.0.0.1:${port}`,
    disableClientInfo: true,
    socket: { reconnectStrategy: false },
  });
  client.on("error", () => {});
  try {
    await client.connect();
    return await client.sendCommand(args);
  } finally {
    if (client.isOpen) client.destroy();
  }
}
