import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { cruise, type ICruiseResult, type IForbiddenRuleType } from "dependency-cruiser";
import { beforeAll, describe, expect, test } from "vitest";
import { useTemporaryFolder } from "../../support/temporary-folder.js";

// Each rule of .dependency-cruiser.cjs is violated once: a rule whose pattern matches nothing, as after a folder has been
// renamed, would otherwise pass forever.

const { forbidden } = createRequire(import.meta.url)("../../../.dependency-cruiser.cjs") as {
  readonly forbidden: readonly (IForbiddenRuleType & { readonly name: string })[];
};

/** Imports that violate a rule: from a file to a file, to an installed package or to a module of Node.js. */
const VIOLATIONS: Readonly<Record<string, readonly (readonly [from: string, to: string])[]>> = {
  "no-circular-imports": [
    ["src/hop/tokens.ts", "src/hop/networks.ts"],
    ["src/hop/networks.ts", "src/hop/tokens.ts"],
  ],
  "http-imports-no-domain-or-integration": [
    ["src/http/rest/a.ts", "src/quotes/quote-engine.ts"],
    ["src/http/b.ts", "src/transfers/resolver.ts"],
    ["src/http/c.ts", "src/hop/routes.ts"],
    ["src/http/d.ts", "src/hop/networks.ts"],
    ["src/http/e.ts", "src/chain/chains.ts"],
    ["src/http/f.ts", "src/prices/token-prices.ts"],
    ["src/http/g.ts", "src/shared-state/redis-store.ts"],
  ],
  "operations-import-no-transport": [
    ["src/operations/a.ts", "src/http/server.ts"],
    ["src/operations/b.ts", "@connectrpc/connect"],
    ["src/operations/c.ts", "node:http2"],
  ],
  "domain-imports-no-operation-or-transport": [
    ["src/quotes/a.ts", "src/http/server.ts"],
    ["src/transfers/b.ts", "src/operations/get-quote.ts"],
    ["src/transfers/c.ts", "gen/bridge_pb.ts"],
    ["src/quotes/d.ts", "@bufbuild/protobuf"],
    ["src/transfers/e.ts", "@connectrpc/connect"],
  ],
  "domain-folders-are-independent": [
    ["src/quotes/a.ts", "src/transfers/resolver.ts"],
    ["src/transfers/b.ts", "src/quotes/quote-engine.ts"],
  ],
  "integrations-import-no-domain": [
    ["src/hop/a.ts", "src/quotes/quote-engine.ts"],
    ["src/chain/b.ts", "src/transfers/resolver.ts"],
    ["src/prices/c.ts", "src/transfers/resolver.ts"],
    ["src/hop/d.ts", "src/http/server.ts"],
    ["src/chain/e.ts", "src/operations/get-quote.ts"],
    ["src/prices/f.ts", "gen/bridge_pb.ts"],
  ],
  "chain-imports-no-hop": [
    ["src/chain/read/a.ts", "src/hop/networks.ts"],
    ["src/chain/b.ts", "src/prices/token-prices.ts"],
  ],
  "prices-imports-no-hop": [["src/prices/read-chainlink-a.ts", "src/hop/networks.ts"]],
  "only-price-feeds-import-chain": [["src/prices/b.ts", "src/chain/chains.ts"]],
  "hop-imports-no-prices": [["src/hop/a.ts", "src/prices/token-prices.ts"]],
  "resilience-imports-nothing": [
    ["src/resilience/a.ts", "src/chain/chains.ts"],
    ["src/resilience/b.ts", "src/hop/networks.ts"],
    ["src/resilience/c.ts", "src/http/server.ts"],
    ["src/resilience/d.ts", "gen/bridge_pb.ts"],
  ],
  "shared-state-imports-only-resilience": [
    ["src/shared-state/a.ts", "src/quotes/quote-engine.ts"],
    ["src/shared-state/b.ts", "src/config/config.ts"],
  ],
  "errors-import-nothing": [["src/errors.ts", "src/resilience/clock.ts"]],
  "layers-import-no-composition": [
    ["src/http/a.ts", "src/observability/log.ts"],
    ["src/operations/b.ts", "src/config/config.ts"],
    ["src/quotes/c.ts", "src/app/gateway.ts"],
    ["src/chain/d.ts", "src/commands/check.ts"],
    ["src/resilience/e.ts", "src/config/config.ts"],
    ["src/hop/f.ts", "src/client.ts"],
  ],
  "app-imports-no-command": [["src/app/a.ts", "src/commands/check.ts"]],
  "observability-imports-no-app": [
    ["src/observability/a.ts", "src/app/gateway.ts"],
    ["src/observability/metrics/b.ts", "src/commands/check.ts"],
  ],
  "config-imports-no-service": [
    ["src/config/a.ts", "src/app/gateway.ts"],
    ["src/config/b.ts", "src/observability/log.ts"],
  ],
  "client-imports-no-service": [
    ["src/client.ts", "src/hop/networks.ts"],
    ["src/client/list-transfers.ts", "src/hop/networks.ts"],
    ["src/client/withdrawal.ts", "gen/hop/sdk-config.ts"],
    ["src/client/bridge-client.ts", "src/http/server.ts"],
  ],
  "quote-math-is-pure": [
    ["src/quotes/math/a.ts", "src/hop/networks.ts"],
    ["src/quotes/math/b.ts", "src/quotes/state/chain-state.ts"],
    ["src/quotes/math/c.ts", "node:crypto"],
    ["src/quotes/math/d.ts", "ethers"],
  ],
  "quote-state-imports-no-engine": [["src/quotes/state/a.ts", "src/quotes/snapshot-engine.ts"]],
  "transfer-status-is-pure": [["src/transfers/status.ts", "src/chain/chains.ts"]],
  "only-hop-imports-the-sdk": [
    ["src/quotes/a.ts", "@hop-protocol/sdk"],
    ["src/app/b.ts", "@hop-protocol/sdk"],
  ],
  "main-loads-commands-on-demand": [["src/main.ts", "src/commands/check.ts"]],
  "tracing-loads-on-demand": [["src/app/a.ts", "src/observability/tracing.ts"]],
  "packages-load-in-part-or-on-demand": [
    ["src/chain/a.ts", "undici"],
    ["src/http/b.ts", "rate-limiter-flexible"],
    ["src/observability/metrics/c.ts", "prom-client"],
  ],
  "service-imports-no-tooling": [
    ["src/app/a.ts", "devnet/network.ts"],
    ["src/app/b.ts", "test/support/stub.ts"],
    ["src/app/c.ts", "bench/load.ts"],
  ],
  "packages-are-declared": [
    ["src/app/a.ts", "undeclared"],
    ["devnet/b.ts", "undeclared"],
  ],
  "service-imports-no-dev-package": [["src/app/a.ts", "dev-tool"]],
};

const DEPENDENCIES = [
  "@bufbuild/protobuf",
  "@connectrpc/connect",
  "@hop-protocol/sdk",
  "ethers",
  "pino",
  "prom-client",
  "rate-limiter-flexible",
  "undici",
];
const folder = useTemporaryFolder();

function put(project: string, file: string, text: string): void {
  const path = join(project, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text, { flag: "a" });
}

function installPackages(project: string): void {
  const toVersions = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, "1.0.0"]));
  const manifest = { dependencies: toVersions(DEPENDENCIES), devDependencies: toVersions(["dev-tool"]) };
  put(project, "package.json", JSON.stringify(manifest));
  for (const name of [...DEPENDENCIES, "dev-tool", "undeclared"]) {
    put(project, `node_modules/${name}/package.json`, JSON.stringify({ name, version: "1.0.0", main: "index.js" }));
    put(project, `node_modules/${name}/index.js`, "");
  }
}

let violations: ICruiseResult["summary"]["violations"];
beforeAll(async () => {
  installPackages(folder());
  for (const [from, to] of Object.values(VIOLATIONS).flat()) {
    const isFile = to.endsWith(".ts");
    const depth = from.split("/").length - 1;
    put(folder(), from, `import "${isFile ? "../".repeat(depth) + to.replace(/\.ts$/, "") : to}";\n`);
    if (isFile) put(folder(), to, "export {};\n");
  }
  const { output } = await cruise(["."], {
    baseDir: folder(),
    validate: true,
    ruleSet: { forbidden: [...forbidden] },
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
  });
  violations = (output as ICruiseResult).summary.violations;
});

/** Returns whether an import is reported as a violation of a rule. A cycle is reported only for one of its modules. */
function isReported(rule: string, from: string, to: string): boolean {
  const resolved = to.endsWith(".ts") ? to : to.replace(/^node:/, "");
  const isTo = (path: string): boolean => path === resolved || path.startsWith(`node_modules/${resolved}/`);
  return violations.some((violation) => {
    if (violation.rule.name !== rule) return false;
    return rule === "no-circular-imports" || (violation.from === from && isTo(violation.to));
  });
}

describe("the dependency rules", () => {
  test("are all covered here", () => {
    expect(Object.keys(VIOLATIONS).sort()).toEqual(forbidden.map(({ name }) => name).sort());
  });

  test.each(Object.entries(VIOLATIONS))("%s rejects each import that violates it", (rule, imports) => {
    expect(imports.filter(([from, to]) => !isReported(rule, from, to))).toEqual([]);
  });
});
