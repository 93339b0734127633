import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { collectDefaultMetrics, Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { BridgeService } from "../../../gen/hop/bridge/v1/bridge_pb.js";
import { metricDescriptions } from "../../../src/observability/metrics/metrics.js";
import { HAPROXY_SERIES } from "../../replicas/support/haproxy-series.js";
import { findTool } from "../../support/find-tool.js";
import { readProjectFile, readYaml, toProjectPath } from "./deploy-files.js";

// Checks every metric name and label in alerts and dashboard against the metrics that the service and HAProxy expose.

const promtool = findTool("promtool (Debian: prometheus)", "/usr/bin/promtool", "/usr/local/bin/promtool");
const run = promisify(execFile);

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}
const rules: readonly Rule[] = readYaml("deploy/prometheus/alerts.yml")[0].groups[0].rules;

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}
const dashboard = JSON.parse(readProjectFile("deploy/grafana/dashboards/hop-gateway.json"));
const panels: readonly Panel[] = dashboard.panels;
const annotations: readonly { readonly expr: string }[] = dashboard.annotations.list;
const shown = [...panels.flatMap(({ targets = [] }) => targets), ...annotations].map(({ expr }) => expr);
/** Replaces Grafana's variables. */
const fillVariables = (expr: string): string => expr.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*");

/** Returns the labels of every series, including those that Prometheus adds. */
async function listSeriesLabels(): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  await new Promise((resolve) => setTimeout(resolve, 20));
  const ofProcess = (await registry.getMetricsAsJSON()).map(({ name, type, values }) => {
    // The GC metric has no samples before the first collection.
    const labels =
      name === "nodejs_gc_duration_seconds" ? ["kind"] : values.flatMap((value) => Object.keys(value.labels));
    return { name, type: String(type), labels };
  });
  const byProm = ["instance", "job"];
  const series = new Map<string, Set<string>>([
    ["up", new Set(byProm)],
    ["ALERTS", new Set(["alertname", "alertstate"])],
  ]);
  for (const [name, labels] of HAPROXY_SERIES) series.set(name, new Set([...labels, ...byProm]));
  for (const { name, type, labels } of [...metricDescriptions, ...ofProcess]) {
    if (type !== "histogram") series.set(name, new Set([...labels, ...byProm]));
    else for (const end of ["_bucket", "_sum", "_count"]) series.set(name + end, new Set([...labels, ...byProm, "le"]));
  }
  return series;
}

/** Returns the selectors of an expression: each metric with its matched labels. */
function selectorsIn(expr: string) {
  return [...expr.matchAll(/\b([A-Za-z_:][\w:]*)(?:\{([^}]*)\}|(?=\[| offset))/g)].map(
    ([, metric = "", matchers = ""]) => ({
      metric,
      labels: [...matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label = ""]) => label),
    }),
  );
}

/** Returns the labels by which an expression groups or joins. */
function groupedIn(expr: string): readonly string[] {
  return [...expr.matchAll(/\b(?:by|on|ignoring|without) \(([^)]*)\)/g)].flatMap(([, labels = ""]) =>
    labels.split(/,\s*/),
  );
}

describe("alerts and dashboard", () => {
  test.each([
    ["alerts", rules.map(({ expr }) => expr)],
    ["dashboard", shown],
  ])("%s use only metrics and labels that exist", async (_, exprs) => {
    const series = await listSeriesLabels();
    expect(exprs.length).toBeGreaterThan(15);
    for (const expr of exprs) {
      const selectors = selectorsIn(expr);
      expect(selectors.length, expr).toBeGreaterThan(0);
      for (const { metric, labels } of selectors) {
        expect([...series.keys()], expr).toContain(metric);
        for (const label of labels) expect([...(series.get(metric) ?? [])], expr).toContain(label);
      }
      const known = new Set(selectors.flatMap(({ metric }) => [...(series.get(metric) ?? [])]));
      for (const label of groupedIn(expr)) expect([...known], expr).toContain(label);
      // Every name with the service's prefix must be part of a selector.
      const named = expr.replace(/"[^"]*"/g, "").match(/\b(?:hop_gateway|haproxy|process|nodejs)_\w+/g) ?? [];
      expect(
        named.filter((name) => !series.has(name)),
        expr,
      ).toEqual([]);
    }
  });

  test("use every metric of the service", () => {
    const all = [...shown, ...rules.map(({ expr }) => expr)].join("\n");
    // The head number is of no use by itself: the dashboard shows its age.
    const unseen = metricDescriptions.map(({ name }) => name).filter((name) => !all.includes(name));
    expect(unseen).toEqual(["hop_gateway_chain_head_number"]);
  });

  test("count all operations of the contract where they name several", () => {
    const named = shown.flatMap((expr) => [...expr.matchAll(/operation=~"([^"]*)"/g)].map(([, names = ""]) => names));
    const operations = BridgeService.methods.map(({ name }) => name);
    expect(named.length).toBeGreaterThan(0);
    for (const names of named) expect(names.split("|").sort()).toEqual(operations.toSorted());
  });
});

describe("the alerts", () => {
  test.each(rules.map((rule) => [rule.alert, rule] as const))("%s has a severity and a runbook", (alert, rule) => {
    expect(alert).toMatch(/^HopGateway[A-Z][A-Za-z]+$/);
    expect(rule.for).toMatch(/^\d+m$/);
    expect(["critical", "warning"]).toContain(rule.labels.severity);
    expect(rule.annotations.summary).toMatch(/^\S.{10,100}$/);
    expect(rule.annotations.runbook_url).toBe(`docs/alerts.md#${alert.toLowerCase()}`);
  });

  test("match the sections of docs/alerts.md", () => {
    const sections = [...readProjectFile("docs/alerts.md").matchAll(/^## (HopGateway\w+)\n\n(\S.*)/gm)].map(
      ([, name]) => name,
    );
    expect(sections.sort()).toEqual(rules.map(({ alert }) => alert).sort());
  });

  // With "passes the alert tests" below: an alert that never fires, or always, fails one of its cases.
  test("have test cases that fire and that do not fire", () => {
    const [{ tests }] = readYaml("deploy/prometheus/alerts.test.yml");
    const seen = tests.flatMap(
      ({ alert_rule_test: each }: { alert_rule_test: { alertname: string; exp_alerts: [] }[] }) =>
        each.map(({ alertname, exp_alerts: expected }) => `${alertname} ${expected.length > 0}`),
    );
    expect(new Set(seen)).toEqual(new Set(rules.flatMap(({ alert }) => [`${alert} false`, `${alert} true`])));
  });
});

describe.skipIf(promtool === undefined)("promtool (skipped if not installed)", () => {
  const check = (...args: string[]) => run(promtool ?? "", args, { cwd: toProjectPath("deploy/prometheus") });

  test("accepts the rules and the configuration", async () => {
    expect((await check("check", "rules", "alerts.yml")).stdout).toContain(`SUCCESS: ${rules.length} rules found`);
    for (const name of ["prometheus.yml", "prometheus.replicas.yml"])
      expect((await check("check", "config", name)).stdout).toContain("SUCCESS");
  });

  test("passes the alert tests", async () => {
    expect((await check("test", "rules", "alerts.test.yml")).stdout).toContain("SUCCESS");
  });

  test("accepts every expression of the dashboard", async () => {
    const folder = await mkdtemp(join(tmpdir(), "hop-gateway-dashboard-"));
    try {
      const file = join(folder, "dashboard.json");
      const shownAsRules = shown.map((expr, index) => ({
        record: `dashboard:expr:${index}`,
        expr: fillVariables(expr),
      }));
      // JSON is valid YAML.
      await writeFile(file, JSON.stringify({ groups: [{ name: "dashboard", rules: shownAsRules }] }));
      expect((await check("check", "rules", file)).stdout).toContain(`SUCCESS: ${shown.length} rules found`);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

describe("the dashboard", () => {
  test("has a unique title and id and an expression for each panel", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
    for (const { type, title, targets } of panels) {
      expect(title).toMatch(/^\S/);
      expect(targets?.length ?? 0).toBe(type === "row" ? 0 : targets?.length || 1);
    }
  });

  test("has no overlapping panels and stays within 24 columns", () => {
    const taken = new Set<string>();
    for (const { title, gridPos } of panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.has(`${x} ${y}`), title).toBe(false);
          taken.add(`${x} ${y}`);
        }
      }
    }
  });

  test("filters by the selected instances of the service", () => {
    for (const expr of panels.flatMap(({ targets = [] }) => targets).map(({ expr: each }) => each)) {
      for (const [, metric, selector] of expr.matchAll(/(\w+)\{([^}]*)\}/g)) {
        const isOfHaproxy = metric?.startsWith("haproxy_");
        expect(selector).toContain(isOfHaproxy ? 'job="haproxy"' : 'instance=~"$instance"');
      }
    }
  });

  test("is provisioned with its data source and folder", () => {
    const [{ datasources }] = readYaml("deploy/grafana/provisioning/datasources/prometheus.yaml");
    expect(datasources[0]).toMatchObject({ type: "prometheus", url: "http://prometheus:9090", isDefault: true });
    const [{ providers }] = readYaml("deploy/grafana/provisioning/dashboards/hop-gateway.yaml");
    const [{ services }] = readYaml("deploy/compose.yaml");
    expect(services.grafana.volumes).toContain(`./grafana/dashboards:${providers[0].options.path}:ro`);
    const home = services.grafana.environment.GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH;
    expect(home).toBe(`${providers[0].options.path}/hop-gateway.json`);
  });
});
