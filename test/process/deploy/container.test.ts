import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { ValidationSeverity, validate } from "dockerfile-utils";
import { describe, expect, test } from "vitest";
import { loadConfig } from "../../../src/config/config.js";
import { ENVIRONMENT_VARIABLES } from "../../../src/config/environment-table.js";
import { NODE_OPTIONS } from "../../support/service/node-options.js";
import { sendJson, startHttpStub } from "../../support/stubs/http-stub.js";
import { readEnvironmentFile, readProjectFile, readYaml, renderEnvironment, toTableVariable } from "./deploy-files.js";

// Checks the Containerfile without a container engine; .ci/deploy.sh runs its steps.

const text = readProjectFile("deploy/Containerfile");
/** The instructions with their arguments; continued lines are joined. */
const instructions = text
  .replace(/^#.*\n/gm, "")
  .replace(/\\\n/g, " ")
  .split("\n")
  .filter((line) => line.trim() !== "")
  .map((line) => {
    const [, name = "", argument = ""] = /^([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    return { name, argument };
  });
const argumentsOf = (name: string): readonly string[] =>
  instructions.filter((each) => each.name === name).map(({ argument }) => argument);
const manifest = JSON.parse(readProjectFile("package.json"));

describe("the Containerfile", () => {
  test("passes the linter", () => {
    const severe = { deprecatedMaintainer: ValidationSeverity.ERROR, emptyContinuationLine: ValidationSeverity.ERROR };
    const found = validate(text, { ...severe, instructionJSONInSingleQuotes: ValidationSeverity.ERROR });
    expect(found.map(({ message, range }) => `${range.start.line + 1}: ${message}`)).toEqual([]);
  });

  test("uses pinned images of one version of Node.js", () => {
    const images = argumentsOf("FROM");
    expect(images).toHaveLength(2);
    for (const image of images) expect(image).toMatch(/^node:\d+\.\d+\.\d+-bookworm-slim\$\{\w+\}( AS \w+)?$/);
    const [version] = /\d+\.\d+\.\d+/.exec(images[1] ?? "") ?? [];
    expect(images[0]).toContain(`node:${version}-bookworm-slim$`);
  });

  test("runs without compilers as an unprivileged numeric user", () => {
    expect(argumentsOf("FROM").at(-1)).toMatch(/-slim\$\{RUNTIME_DIGEST\}$/);
    const last = instructions.slice(instructions.findLastIndex(({ name }) => name === "FROM"));
    const [user] = last.filter(({ name }) => name === "USER").map(({ argument }) => argument);
    expect(user).toMatch(/^[1-9]\d{3,}:[1-9]\d{3,}$/);
    const after = last.slice(last.findIndex(({ name }) => name === "USER"));
    expect(after.map(({ name }) => name)).not.toContain("RUN");
    expect(text).toContain(`--owner=${user?.split(":")[0]} --group=${user?.split(":")[1]} /data`);
  });

  test("downloads nothing itself and contains no secret", () => {
    expect(argumentsOf("ADD")).toEqual([]);
    expect(argumentsOf("ARG")).toEqual(["BUILD_DIGEST=", "RUNTIME_DIGEST="]);
    expect(argumentsOf("ENV")).toEqual(["NODE_ENV=production METRICS_PORT=9464"]);
    expect(argumentsOf("EXPOSE")).toEqual(["8000 9464"]);
    for (const run of argumentsOf("RUN")) expect(run).not.toMatch(/curl|wget|apt|https?:/);
  });

  test("is built by the script that CI runs and contains its output", () => {
    expect(argumentsOf("RUN")[0]).toBe("deploy/build.sh /app");
    expect(argumentsOf("COPY")).toEqual([". .", "--from=build /app /app"]);
    expect(readProjectFile(".ci/deploy.sh")).toContain("deploy/build.sh");
  });

  test("starts the package's command directly, so that signals reach it", () => {
    expect(JSON.parse(argumentsOf("ENTRYPOINT")[0] ?? "")).toEqual([
      "node",
      ...NODE_OPTIONS,
      manifest.bin["hop-gateway"],
    ]);
    // As a newcomer does.
    expect(manifest.scripts.start).toMatch(
      new RegExp(`exec node ${NODE_OPTIONS.join(" ")} ${manifest.bin["hop-gateway"]}$`),
    );
    expect(argumentsOf("STOPSIGNAL")).toEqual(["SIGTERM"]);
    expect(argumentsOf("CMD")).toEqual([]);
  });

  test.each([
    ["on the metrics port", 200, 0],
    ["on the metrics port", 503, 1],
    ["on the metrics port", undefined, 1],
    ["on the main port with METRICS_PORT=same", 200, 0],
  ])("health check of a service that answers %s with %s exits with code %i", async (where, status, expected) => {
    const stub = await startHttpStub((request, response) =>
      sendJson(response, {}, request.url === "/livez" ? status : 404),
    );
    if (status === undefined) await stub.close();
    const [, command = "[]"] = /CMD (\[.*\])$/.exec(argumentsOf("HEALTHCHECK")[0] ?? "") ?? [];
    const [program, ...args] = JSON.parse(command);
    expect(program).toBe("node");
    const { port } = new URL(stub.url);
    const env = where.includes("same") ? { PORT: port, METRICS_PORT: "same" } : { PORT: "1", METRICS_PORT: port };
    const code = await promisify(execFile)(process.execPath, args, { env }).then(
      () => 0,
      (error: { code: number }) => error.code,
    );
    if (status !== undefined) await stub.close();
    expect(code).toBe(expected);
  });

  test("copies only the listed files into the build context", () => {
    const lines = readProjectFile(".dockerignore")
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    expect(lines[0]).toBe("*");
    for (const line of lines.slice(1)) expect(line).toMatch(/^!|^\*\*\//);
    for (const name of ["node_modules", "dist", ".env*"]) expect(lines).toContain(`**/${name}`);
  });

  test("copies everything that the build reads into the build context", () => {
    const copied = [...readProjectFile(".dockerignore").matchAll(/^!(.+)$/gm)].map(([, path = ""]) => path);
    const lists = [...readProjectFile("packaging/build.js").matchAll(/^const [A-Z_]+ = \[(.*?)\];/gms)];
    const inputs = lists.flatMap(([, list = ""]) => [...list.matchAll(/"([^"]+)"/g)].map(([, path = ""]) => path));
    expect(inputs).toEqual(expect.arrayContaining(["src", "docs/integrate.md"]));
    for (const input of inputs.filter((path) => !path.startsWith("node_modules/")))
      expect(
        copied.some((path) => `${input}/`.startsWith(`${path}/`)),
        input,
      ).toBe(true);
  });
});

describe("compose.yaml", () => {
  const [compose] = readYaml("deploy/compose.yaml");
  const services = Object.entries<Record<string, unknown>>(compose.services);

  test.each(services)("%s has a pinned image and no unneeded privileges", (_, service) => {
    expect(service.image).toMatch(/:v?\d+\.\d+\.\d+(\$\{\w+_DIGEST:-\})?$/);
    expect(service.cap_drop).toEqual(["ALL"]);
    expect(service.security_opt).toEqual(["no-new-privileges:true"]);
    for (const port of service.ports as string[]) expect(port).toMatch(/^127\.0\.0\.1:/);
  });

  test("writes only to volumes and grants viewers no write access", () => {
    const { gateway, prometheus, grafana } = compose.services;
    expect([gateway.read_only, prometheus.read_only]).toEqual([true, true]);
    expect(readProjectFile("deploy/hop-gateway.env.example")).toContain("\n#INDEX=sqlite:/data/");
    expect(gateway.volumes).toEqual(["index:/data"]);
    expect(argumentsOf("VOLUME")).toEqual(["/data"]);
    expect(grafana.environment.GF_AUTH_ANONYMOUS_ORG_ROLE).toBe("Viewer");
  });

  test("lets the operator's file override every variable, and reads no index from public endpoints", () => {
    const { gateway } = compose.services;
    const chosen = { INDEX: "sqlite:/data/hop.db", METRICS_PORT: "same", METRICS_HOST: "127.0.0.1" };
    expect(renderEnvironment(gateway, { "hop-gateway.env": chosen })).toMatchObject(chosen);
    expect(loadConfig(renderEnvironment(gateway)).index).toBeUndefined();
    expect(loadConfig(renderEnvironment(gateway, { "hop-gateway.env": chosen })).index).toBeDefined();
  });

  test.each(["compose.yaml", "compose.replicas.yaml"])(
    "Grafana of %s has no account with a default password",
    (file) => {
      const [{ services: each }] = readYaml(`deploy/${file}`);
      expect(each.grafana.environment).toMatchObject({
        GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION: "true",
        GF_AUTH_DISABLE_LOGIN_FORM: "true",
        GF_AUTH_BASIC_ENABLED: "false",
      });
    },
  );

  test("uses the version of the package", () => {
    expect(compose.services.gateway.image).toBe(`hop-gateway:${manifest.version}`);
  });

  test("scrapes the gateway on its metrics port", () => {
    const [{ scrape_configs: scraped }] = readYaml("deploy/prometheus/prometheus.yml");
    // The alerts select this job name.
    expect(readProjectFile("deploy/prometheus/alerts.yml")).toContain(`up{job="${scraped[0].job_name}"}`);
    const { METRICS_PORT, METRICS_HOST } = renderEnvironment(compose.services.gateway);
    expect(scraped[0].static_configs[0].targets).toEqual([`gateway:${METRICS_PORT}`]);
    expect(METRICS_HOST).toBe("0.0.0.0");
    expect(compose.services.gateway.ports).toEqual(["127.0.0.1:8000:8000"]);
  });

  test("mounts existing paths and every declared volume", () => {
    const mounts = services.flatMap(([, { volumes }]) => volumes as string[]).map((each) => each.split(":")[0] ?? "");
    for (const mount of mounts) {
      if (mount.startsWith("./")) expect(() => readProjectFile(`deploy/${mount.slice(2)}/`)).toThrow(/EISDIR/);
      else expect(Object.keys(compose.volumes)).toContain(mount);
    }
  });

  test("allows more time to stop than the request timeout", () => {
    expect(Number.parseInt(compose.services.gateway.stop_grace_period, 10)).toBeGreaterThan(11);
  });

  test("sets only known variables, as does the example environment file", () => {
    const known = ENVIRONMENT_VARIABLES.map(({ name }) => name);
    for (const name of Object.keys(renderEnvironment(compose.services.gateway)))
      expect(known).toContain(toTableVariable(name));
    const example = Object.keys(readEnvironmentFile("deploy/hop-gateway.env.example", true));
    expect(example.length).toBeGreaterThan(9);
    for (const name of example) expect(known).toContain(toTableVariable(name));
    expect(readProjectFile(".gitignore")).toContain("deploy/hop-gateway.env\n");
  });
});
