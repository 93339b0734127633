import ipaddr from "ipaddr.js";
import { describe, expect, test } from "vitest";
import { parseCommandLine } from "../../../src/commands/command-line.js";
import { loadConfig } from "../../../src/config/config.js";
import { ENVIRONMENT_VARIABLES } from "../../../src/config/environment-table.js";
import { getNetwork } from "../../../src/hop/networks.js";
import { listProjectFiles, readProjectFile, readYaml, toTableVariable } from "./deploy-files.js";

const resources = listProjectFiles("deploy/kubernetes/").flatMap((name) => readYaml(name));
const of = (kind: string) => {
  const found = resources.filter((each) => each.kind === kind);
  if (found.length !== 1) throw new Error(`${found.length} of ${kind}`);
  return found[0];
};
const deployment = of("Deployment");
const pod = deployment.spec.template;
const [container] = pod.spec.containers;
const portOf = (name: string): number =>
  container.ports.find((port: { name: string }) => port.name === name).containerPort;
const version = JSON.parse(readProjectFile("package.json")).version;

describe("the manifests", () => {
  test("contain no secret when the folder is applied: the example must not replace a real secret", () => {
    const applied = listProjectFiles("deploy/kubernetes/").filter((name) => /\.(ya?ml|json)$/.test(name));
    expect(applied.length).toBeGreaterThan(5);
    expect(applied.flatMap((name) => readYaml(name)).map(({ kind }) => kind)).not.toContain("Secret");
    expect(readProjectFile(".gitignore")).toContain("deploy/kubernetes/secret.yaml\n");
  });

  test("contain the expected kinds under one name", () => {
    expect(resources.map(({ kind }) => kind).sort()).toEqual([
      ...[
        "ConfigMap",
        "CronJob",
        "Deployment",
        "HorizontalPodAutoscaler",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Secret",
        "Service",
      ],
    ]);
    for (const { kind, metadata, apiVersion } of resources) {
      expect(metadata.name).toBe(kind === "CronJob" ? "hop-gateway-compare" : "hop-gateway");
      expect(apiVersion).toMatch(/^((apps|batch|policy|networking\.k8s\.io)\/)?v1$|^autoscaling\/v2$/);
    }
  });

  test("select the pods of the deployment", () => {
    const { labels } = pod.metadata;
    const selectors = [
      deployment.spec.selector.matchLabels,
      of("Service").spec.selector,
      of("PodDisruptionBudget").spec.selector.matchLabels,
      of("NetworkPolicy").spec.podSelector.matchLabels,
      ...pod.spec.topologySpreadConstraints.map(
        (each: { labelSelector: { matchLabels: object } }) => each.labelSelector.matchLabels,
      ),
    ];
    for (const selector of selectors) expect(selector).toEqual(labels);
    expect(of("HorizontalPodAutoscaler").spec.scaleTargetRef).toEqual({
      apiVersion: "apps/v1",
      kind: "Deployment",
      name: deployment.metadata.name,
    });
  });

  test("end an update whose pods stop soon after they became ready", () => {
    expect(deployment.spec.minReadySeconds).toBeGreaterThanOrEqual(10);
    expect(deployment.spec.strategy.rollingUpdate.maxUnavailable).toBe(0);
  });

  test("use ports on which the service listens", () => {
    const { data } = of("ConfigMap");
    expect(portOf("http")).toBe(loadConfig(data).port);
    expect(portOf("metrics")).toBe(loadConfig(data).metricsPort);
    // Probes and Prometheus come from outside the pod.
    expect(loadConfig(data).metricsHost).toBe("0.0.0.0");
    expect(Number(pod.metadata.annotations["prometheus.io/port"])).toBe(portOf("metrics"));
    expect(of("Service").spec.ports).toEqual([{ name: "http", port: 80, targetPort: "http" }]);
  });

  test("set only known variables and no secret", () => {
    const known = ENVIRONMENT_VARIABLES.map(({ name }) => name);
    const secret = of("Secret").stringData;
    for (const name of [...Object.keys(of("ConfigMap").data), ...Object.keys(secret)]) {
      expect(known).toContain(toTableVariable(name));
    }
    expect(() => loadConfig({ ...of("ConfigMap").data, ...secret })).not.toThrow();
    const endpoints = Object.entries<string>(secret).filter(([name]) => name.startsWith("RPC_URL_"));
    expect(endpoints).toHaveLength(getNetwork("mainnet").chains.size);
    for (const url of endpoints.flatMap(([, urls]) => urls.split(","))) {
      expect(url).toMatch(/^https:\/\/[a-z]+\.example\/KEY$/);
    }
    for (const name of ["INDEX", "INDEX_LISTEN_URL", "SHARED_STATE"])
      expect(new URL(secret[name]).password).toBe("KEY");
    const names = container.envFrom.flatMap((from: object) => Object.values<{ name: string }>(from as never));
    expect(names.map(({ name }: { name: string }) => name)).toEqual([
      of("ConfigMap").metadata.name,
      of("Secret").metadata.name,
    ]);
  });
});

describe("the pod", () => {
  test("meets the restricted pod security standard", () => {
    const { securityContext } = pod.spec;
    expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    expect(readProjectFile("deploy/Containerfile")).toContain(
      `USER ${securityContext.runAsUser}:${securityContext.runAsGroup}\n`,
    );
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    expect(pod.spec.automountServiceAccountToken).toBe(false);
    expect(pod.spec).not.toHaveProperty("hostNetwork");
    expect(pod.spec).not.toHaveProperty("volumes");
  });

  test("has a pinned image and bounded memory", () => {
    expect(container.image).toMatch(new RegExp(`:${version.replaceAll(".", "\\.")}$`));
    expect(container.resources.limits).toEqual({ memory: "512Mi" });
    expect(container.resources.requests).toEqual({ cpu: "500m", memory: "256Mi" });
  });

  test("uses /livez on the metrics port for liveness, /readyz on the main port for readiness", () => {
    for (const probe of ["startupProbe", "livenessProbe"]) {
      expect(container[probe].httpGet).toEqual({ path: "/livez", port: "metrics" });
    }
    expect(container.readinessProbe.httpGet).toEqual({ path: "/readyz", port: "http" });
  });

  test("has time to finish requests in progress", () => {
    const { command } = container.lifecycle.preStop.exec;
    const pauseSeconds = Number(/([\d_]+)\)$/.exec(command.at(-1))?.[1]?.replaceAll("_", "")) / 1_000;
    expect(pauseSeconds).toBe(5);
    const { requestTimeoutMs } = loadConfig(of("ConfigMap").data);
    expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThan(pauseSeconds + requestTimeoutMs / 1_000 + 1);
  });
});

describe("the comparison with the SDK", () => {
  const { jobTemplate, concurrencyPolicy } = of("CronJob").spec;
  const { template, backoffLimit } = jobTemplate.spec;
  const [compare] = template.spec.containers;

  test("runs hop-gateway compare with the image and the configuration of the service", () => {
    expect(parseCommandLine(compare.args)).toMatchObject({ name: "compare", isJson: true });
    for (const part of ["image", "envFrom", "securityContext"]) expect(compare[part]).toEqual(container[part]);
    expect(template.spec.securityContext).toEqual(pod.spec.securityContext);
    expect(template.spec.automountServiceAccountToken).toBe(false);
  });

  test("reports the first failure, and gets no requests of callers", () => {
    expect([backoffLimit, template.spec.restartPolicy, concurrencyPolicy]).toEqual([0, "Never", "Forbid"]);
    expect(template.metadata.labels).not.toEqual(pod.metadata.labels);
  });
});

describe("the network policy", () => {
  const { spec } = of("NetworkPolicy");
  const [dns, stores, world] = spec.egress;

  test("allows ingress to the main port and, for the scraper, to the metrics", () => {
    expect(spec.policyTypes).toEqual(["Ingress", "Egress"]);
    const [open, scraped] = spec.ingress;
    expect(open).toEqual({ ports: [{ protocol: "TCP", port: portOf("http") }] });
    expect(scraped.ports).toEqual([{ protocol: "TCP", port: portOf("metrics") }]);
    expect(scraped.from).toHaveLength(1);
  });

  test("allows egress to DNS, to the databases of the secret, and to the public internet", () => {
    expect(spec.egress).toHaveLength(3);
    expect(stores.to).toEqual([{ podSelector: { matchLabels: { "hop-gateway/store": "true" } } }]);
    const ports = stores.ports.map(({ port }: { port: number }) => port);
    const { INDEX, SHARED_STATE } = of("Secret").stringData;
    for (const url of [INDEX, SHARED_STATE]) expect(ports).toContain(Number(new URL(url).port));
    expect(dns.ports.map(({ port }: { port: number }) => port)).toEqual([53, 53]);
    expect(dns.to).toHaveLength(1);
    expect(world.to.map(({ ipBlock }: { ipBlock: { cidr: string } }) => ipBlock.cidr)).toEqual([
      "0.0.0.0/0",
      "2000::/3",
    ]);
  });

  test("blocks every special range of addresses, as the SSRF guard does", () => {
    type Range = readonly [ipaddr.IPv4 | ipaddr.IPv6, number];
    type SpecialRanges = Readonly<Record<string, Range | readonly Range[]>>;
    const isRange = (ranges: Range | readonly Range[]): ranges is Range => typeof ranges[1] === "number";
    const closed: Range[] = world.to
      .flatMap(({ ipBlock }: { ipBlock: { except: string[] } }) => ipBlock.except)
      .map((range: string) => ipaddr.parseCIDR(range));
    const isWithin = ([address, bits]: Range, [outer, outerBits]: Range): boolean =>
      address.kind() === outer.kind() &&
      bits >= outerBits &&
      (address as ipaddr.IPv4).match(outer as ipaddr.IPv4, outerBits);
    const open = ipaddr.parseCIDR("2000::/3");
    const special = [ipaddr.IPv4, ipaddr.IPv6]
      .flatMap(({ prototype }) =>
        Object.values((prototype as unknown as { SpecialRanges: SpecialRanges }).SpecialRanges),
      )
      .flatMap((ranges) => (isRange(ranges) ? [ranges] : ranges))
      .filter((range) => range[0].kind() === "ipv4" || isWithin(range, open));
    expect(special.length).toBeGreaterThan(20);
    expect(special.filter((range) => !closed.some((outer) => isWithin(range, outer))).map(String)).toEqual([]);
  });
});

test("the autoscaler keeps three pods, one of which may be evicted", () => {
  const { minReplicas, maxReplicas } = of("HorizontalPodAutoscaler").spec;
  expect(minReplicas).toBeGreaterThanOrEqual(3);
  expect(maxReplicas).toBeGreaterThan(minReplicas);
  expect(of("PodDisruptionBudget").spec.maxUnavailable).toBe(1);
  // A replica count in the deployment would conflict with the autoscaler.
  expect(deployment.spec).not.toHaveProperty("replicas");
});
