/**
 * Data flows one way: http -> operations -> quotes | transfers | routes -> hop, chain, prices.
 * A folder imports only what stands to its right; see CONTRIBUTING.md.
 */
const domain = "^src/(quotes|transfers|routes)/";
const world = "^src/(hop|chain|prices|resilience)/";
/** The arithmetic of quotes. */
const pure = "^src/quotes/math/";
/** What puts the parts together. */
const roots = "^src/(main|client|node-client)\\.ts$|^src/(app|commands|config|observability)/";

const forbid = (name, comment, from, to) => ({ name, comment, severity: "error", from, to });

module.exports = {
  forbidden: [
    forbid("no-circular", "a cycle has no direction", {}, { circular: true }),
    forbid(
      "http-knows-nothing-of-hop",
      "the door maps bytes to messages and calls operations",
      { path: "^src/http/" },
      { path: [domain, world] },
    ),
    forbid(
      "operations-know-no-transport",
      "an operation takes a message and gives a message",
      { path: "^src/operations/" },
      { path: ["^src/http/", "node_modules/@connectrpc/", "^(node:)?http2?$"] },
    ),
    forbid(
      "domain-looks-right",
      "the domain knows neither door nor operations nor the contract",
      { path: domain },
      { path: ["^src/(http|operations)/", "^gen/", "node_modules/@bufbuild/", "node_modules/@connectrpc/"] },
    ),
    forbid(
      "world-looks-right",
      "the edge to the world knows nothing of who asks",
      { path: world },
      { path: ["^src/(http|operations|quotes|transfers|routes)/", "^gen/"] },
    ),
    forbid(
      "parts-know-not-the-whole",
      "the composition root knows the parts; what they need of the configuration reaches them as arguments",
      { path: ["^src/(http|operations)/", domain, world] },
      { path: roots },
    ),
    forbid(
      "domains-stand-apart",
      "quotes, transfers and routes do not need each other",
      { path: "^src/(quotes|transfers|routes)/" },
      { path: domain, pathNot: "^src/$1/" },
    ),
    forbid(
      "pure-core",
      "the arithmetic of a quote knows no network, no clock, no SDK and no ethers",
      { path: pure },
      { pathNot: pure },
    ),
    forbid(
      "only-hop-imports-the-sdk",
      "the SDK is heavy and full of quirks: it stays behind src/hop/",
      { path: "^src/", pathNot: "^src/hop/" },
      { path: "node_modules/@hop-protocol/" },
    ),
    forbid(
      "commands-load-what-they-need",
      "the service starts sooner without what the other commands need",
      { path: "^src/main\\.ts$" },
      { path: "^src/", pathNot: "^src/commands/command-line\\.ts$", dynamic: false },
    ),
    forbid(
      "spans-and-metrics-when-wanted",
      "OpenTelemetry and prom-client are loaded where somebody asks for what they do: a start is quicker without",
      { path: "^src/" },
      {
        path: "^src/observability/(tracing|metrics/exposition)\\.ts$",
        dynamic: false,
        dependencyTypesNot: ["type-only"],
      },
    ),
    forbid(
      "service-without-devnet",
      "the service must not need the local network",
      { path: "^src/" },
      { path: "^(devnet|test|bench|openapi)/" },
    ),
    forbid(
      "no-undeclared-packages",
      "what is imported is declared",
      { path: "^(src|devnet)/" },
      { dependencyTypes: ["npm-no-pkg", "npm-unknown"] },
    ),
    forbid(
      "service-without-dev-packages",
      "production code runs without devDependencies",
      { path: "^src/" },
      { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"] },
    ),
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "require", "node", "default", "types"],
    },
  },
};
