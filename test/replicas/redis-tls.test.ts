import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { findTool } from "../support/find-tool.js";
import { buildService } from "../support/service/build-service.js";
import { useTemporaryFolder } from "../support/temporary-folder.js";
import { REDIS_PASSWORD, type RedisServer, startRedis } from "./support/redis-server.js";
import { type Replicas, startReplicas } from "./support/replicas.js";
import { findFreePort, runProgram } from "./support/server-process.js";
import { leftOut, redisProgram } from "./support/server-programs.js";

const openssl = findTool("openssl", "/usr/bin/openssl");
const isLeftOut = redisProgram === undefined || openssl === undefined;

describe.skipIf(isLeftOut)(`Redis over TLS${leftOut(redisProgram, openssl)}`, () => {
  const folder = useTemporaryFolder();
  const started: Replicas[] = [];
  let command: string;
  let redis: RedisServer | undefined;

  beforeAll(async () => {
    command = await buildService();
  });
  afterAll(() => redis?.close());
  afterEach(() => {
    for (const replicas of started.splice(0)) replicas.kill();
  });

  test("is used if its certificate is of a known authority and for its host name", async () => {
    const [key, certificate] = ["key.pem", "certificate.pem"].map((name) => join(folder(), name)) as [string, string];
    await runProgram(openssl ?? "", [
      ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"],
      ...["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate],
    ]);
    // Redis runs as another user.
    for (const [path, mode] of [
      [folder(), 0o755],
      [key, 0o644],
    ] as const)
      await chmod(path, mode);
    const port = await findFreePort();
    redis = await startRedis([
      ...["--tls-port", `${port}`, "--tls-auth-clients", "no"],
      ...["--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate],
    ]);
    const start = async (host: string, more: Readonly<Record<string, string>>): Promise<Replicas> => {
      const url = `rediss://:${REDIS_PASSWORD}@${host}:${port}`;
      const replicas = await startReplicas(command, 1, { SHARED_STATE: url, ...more });
      started.push(replicas);
      return replicas;
    };
    const known = { NODE_EXTRA_CA_CERTS: certificate };
    const trusted = await start("localhost", known);
    await expect.poll(() => trusted.readMetric("hop_gateway_redis_connected")).toEqual([1]);
    for (const refused of [await start("127.0.0.1", known), await start("localhost", {})]) {
      await expect.poll(() => refused.services[0]?.output().stdout).toContain("Redis is out of reach");
      expect(await refused.readMetric("hop_gateway_redis_connected")).toEqual([0]);
    }
  });
});
