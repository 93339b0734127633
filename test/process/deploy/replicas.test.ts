import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { loadConfig } from "../../../src/config/config.js";
import { ENVIRONMENT_VARIABLES } from "../../../src/config/environment-table.js";
import { findTool } from "../../support/find-tool.js";
import { readProjectFile, readYaml, renderEnvironment, toProjectPath } from "./deploy-files.js";

// Checks compose.replicas.yaml without a container engine. test/replicas/rolling-restart.test.ts runs its parts, with the same
// configuration of HAProxy.

const [compose] = readYaml("deploy/compose.replicas.yaml");
const { haproxy, postgres, redis, prometheus } = compose.services;
const gateway = compose.services["gateway-1"];
const configuration = readProjectFile("deploy/haproxy/haproxy.cfg");
const haproxyProgram = findTool("haproxy", "/usr/sbin/haproxy");
const names = ["gateway-1", "gateway-2", "gateway-3"];
const services = Object.entries<Record<string, unknown>>(compose.services);

/** Fills in what compose takes from replicas.env. */
const fillIn = (text: string): string => text.replaceAll(/\$\{\w+:\?is not set\}/g, "0123456789abcdef");
const readSeconds = (name: string): number =>
  Math.min(
    ...[...configuration.matchAll(new RegExp(`timeout ${name} +(\\d+)s`, "g"))].map(([, value]) => Number(value)),
  );

describe("compose.replicas.yaml", () => {
  test.each(services)("%s has a pinned image and no unneeded privileges", (_, service) => {
    expect(service.image).toMatch(/:v?\d+\.\d+(\.\d+)?(\$\{\w+_DIGEST:-\})?$/);
    expect(service.cap_drop).toEqual(["ALL"]);
    expect(service.security_opt).toEqual(["no-new-privileges:true"]);
    for (const port of (service.ports ?? []) as string[]) expect(port).toMatch(/^127\.0\.0\.1:/);
  });

  test("has three equal replicas, which only HAProxy and Prometheus reach", () => {
    for (const name of names) expect(compose.services[name]).toEqual(gateway);
    expect(gateway).not.toHaveProperty("ports");
    expect(gateway.image).toBe(`hop-gateway:${JSON.parse(readProjectFile("package.json")).version}`);
    expect(haproxy.depends_on).toEqual(names);
    expect(Number.parseInt(gateway.stop_grace_period, 10)).toBeGreaterThan(11);
  });

  test("configures the replicas with known variables and the servers of the file", () => {
    const known = ENVIRONMENT_VARIABLES.map(({ name }) => name);
    const rendered = renderEnvironment(gateway);
    for (const name of Object.keys(rendered)) expect(known).toContain(name);
    const filled = Object.entries<string>(rendered).map(([name, value]) => [name, fillIn(value)] as const);
    const environment = Object.fromEntries(filled);
    expect(() => loadConfig(environment)).not.toThrow();
    for (const [name, service, port] of [
      ["INDEX", "postgres", "5432"],
      ["INDEX_LISTEN_URL", "postgres", "5432"],
      ["SHARED_STATE", "redis", "6379"],
    ] as const) {
      const url = new URL(environment[name] ?? "");
      expect([url.hostname, url.port]).toEqual([service, port]);
      expect(Object.keys(compose.services)).toContain(service);
    }
    const { POSTGRES_USER, POSTGRES_DB, POSTGRES_PASSWORD } = postgres.environment;
    const index = `postgres://${POSTGRES_USER}:${POSTGRES_PASSWORD}@postgres:5432/${POSTGRES_DB}?sslmode=disable`;
    expect(gateway.environment.INDEX).toBe(index);
    expect(redis.command.at(-1)).toBe(/redis:\/\/:(.*)@/.exec(gateway.environment.SHARED_STATE)?.[1]);
  });

  test("takes all secrets from the example of the environment file, which holds none", () => {
    const text = readProjectFile("deploy/compose.replicas.yaml");
    const used = new Set([...text.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name));
    const example = [...readProjectFile("deploy/replicas.env.example").matchAll(/^(\w+)=(.*)$/gm)];
    expect(new Set(example.map(([, name]) => name))).toEqual(used);
    expect(example.map(([, , value]) => value)).toEqual(["", ""]);
    expect(readProjectFile(".gitignore")).toContain("deploy/replicas.env\n");
  });

  test("scrapes every replica and HAProxy", () => {
    const path = prometheus.command[0].replace("--config.file=/etc/prometheus/", "");
    const [{ scrape_configs: scraped }] = readYaml(`deploy/prometheus/${path}`);
    const targets = scraped.map((each: { static_configs: { targets: string[] }[] }) => each.static_configs[0]?.targets);
    expect(targets).toEqual([
      names.map((name) => `${name}:${renderEnvironment(gateway).METRICS_PORT}`),
      ["haproxy:8404"],
    ]);
    // The alerts select this job name.
    expect(readProjectFile("deploy/prometheus/alerts.yml")).toContain(`up{job="${scraped[0].job_name}"}`);
  });
});

describe("haproxy.cfg", () => {
  test("names the replicas of the compose file in every backend, ready and not", () => {
    const servers = [...configuration.matchAll(/^ {2}server (\S+) "\$\{GATEWAY_(\d)-(\S+):(\d+)\}"/gm)];
    const backends = configuration.match(/^backend /gm) ?? [];
    expect(servers).toHaveLength(backends.length * names.length * 2);
    for (const [, , number, name, port] of servers) {
      expect([name, port]).toEqual([names[Number(number) - 1], `${loadConfig({}).port}`]);
    }
  });

  test("waits longer than the service, and longer than streams are silent", () => {
    const { requestTimeoutMs } = loadConfig({});
    expect(readSeconds("server")).toBeGreaterThan(requestTimeoutMs / 1_000);
    const streams = configuration.split(/^backend /m).filter((text) => /^(grpc_)?streams/.test(text));
    expect(streams).toHaveLength(2);
    for (const text of streams) expect(text).toContain("timeout server 120s");
    expect(readSeconds("client")).toBeGreaterThan(120);
  });

  test("replaces the caller's X-Forwarded-For and hides metrics", () => {
    expect(configuration).toContain("http-request set-header X-Forwarded-For %[src]\n");
    expect(configuration).toContain("http-request deny deny_status 404 if { path /metrics }\n");
    expect(gateway.environment.TRUST_PROXY).toBe("true");
  });

  test.skipIf(haproxyProgram === undefined)("is accepted by HAProxy (skipped if not installed)", async () => {
    const env = { GATEWAY_1: "127.0.0.1:1", GATEWAY_2: "127.0.0.1:2", GATEWAY_3: "127.0.0.1:3" };
    const args = ["-c", "-f", toProjectPath("deploy/haproxy/haproxy.cfg")];
    const { stdout, stderr } = await promisify(execFile)(haproxyProgram ?? "", args, { env });
    expect(stdout + stderr).toContain("Configuration file is valid");
    expect(stdout + stderr).not.toMatch(/WARNING|ALERT/);
  });
});
