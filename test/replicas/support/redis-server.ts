import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  createRespParser,
  encodeCommand,
  isErrorReply,
  type RedisReply,
} from "../../../src/shared-state/redis/protocol/resp.js";
import { OPERATOR_KEY } from "../../support/service/planted-keys.js";
import { createServerProcess, findFreePort, giveFolder, type ServerProcess } from "./server-process.js";
import { findServerUser, redisProgram } from "./server-programs.js";

/** The password of the default user. All output of the services is searched for it. */
export const REDIS_PASSWORD = OPERATOR_KEY;

/** A Redis server that keeps everything in memory. */
export interface RedisServer extends ServerProcess {
  readonly port: number;
  readonly url: string;
  /** Sends a command to the server over a connection of its own. Rejects with the code of an error. */
  command(...args: readonly string[]): Promise<RedisReply>;
  /** Stops the server and removes its folder. */
  close(): Promise<void>;
}

export async function startRedis(settings: readonly string[] = []): Promise<RedisServer> {
  const user = findServerUser("redis");
  const folder = await mkdtemp(join(tmpdir(), "hop-redis-"));
  await giveFolder(folder, user);
  const port = await findFreePort();
  const command = (...args: readonly string[]): Promise<RedisReply> => sendCommand(port, args);
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

async function sendCommand(port: number, args: readonly string[]): Promise<RedisReply> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    const replies: RedisReply[] = [];
    const parse = createRespParser({ onReply: (reply) => void replies.push(reply), onPush() {} });
    socket.write(encodeCommand(["AUTH", REDIS_PASSWORD]) + encodeCommand(args));
    while (replies.length < 2) parse((await once(socket, "data"))[0] as Buffer);
    for (const reply of replies) if (isErrorReply(reply)) throw new Error(reply.errorCode);
    return replies[1] ?? null;
  } finally {
    socket.destroy();
  }
}
