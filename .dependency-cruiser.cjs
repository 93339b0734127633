/**
 * A request passes through the folders in this order, and imports point only to the right:
 *
 *   http -> operations -> quotes | transfers -> hop | chain | prices -> resilience
 *
 * test/process/layers/dependency-rules.test.ts proves that each rule can fail. See CONTRIBUTING.md.
 */
const DOMAIN = "^src/(quotes|transfers)/";
const INTEGRATIONS = "^src/(hop|chain|prices)/";
const RESILIENCE = "^src/resilience/";
/** Entry points and the folders that assemble the service. */
const COMPOSITION = "^src/(main|client)\\.ts$|^src/(app|client|commands|config|observability)/";

const forbid = (name, comment, from, to) => ({ name, comment, severity: "error", from, to });

module.exports = {
  forbidden: [
    forbid(
      "no-circular-imports",
      "modules in a cycle cannot be understood or loaded one by one",
      {},
      { circular: true },
    ),

    // The layers, from left to right.
    forbid(
      "http-imports-no-domain-or-integration",
      "transports convert bytes to messages and call operations; they know nothing of Hop",
      { path: "^src/http/" },
      { path: [DOMAIN, INTEGRATIONS, "^src/shared-state/"] },
    ),
    forbid(
      "operations-import-no-transport",
      "an operation receives a message and returns a message, whatever the protocol",
      { path: "^src/operations/" },
      { path: ["^src/http/", "node_modules/@connectrpc/", "^(node:)?http2?$"] },
    ),
    forbid(
      "domain-imports-no-operation-or-transport",
      "quotes and transfers are independent of the contract and of every transport",
      { path: DOMAIN },
      { path: ["^src/(http|operations)/", "^gen/", "node_modules/@bufbuild/", "node_modules/@connectrpc/"] },
    ),
    forbid(
      "domain-folders-are-independent",
      "quotes and transfers do not need each other",
      { path: "^src/(quotes|transfers)/" },
      { path: DOMAIN, pathNot: "^src/$1/" },
    ),
    forbid(
      "integrations-import-no-domain",
      "hop, chain and prices do not depend on what uses them",
      { path: INTEGRATIONS },
      { path: ["^src/(http|operations)/", DOMAIN, "^gen/(?!hop/sdk-config\\.ts$)"] },
    ),
    forbid(
      "chain-imports-no-hop",
      "chain works with any EVM chain; what is specific to Hop reaches it as arguments",
      { path: "^src/chain/" },
      { path: "^src/(hop|prices)/" },
    ),
    forbid(
      "prices-imports-no-hop",
      "prices do not depend on contracts and settings of Hop",
      { path: "^src/prices/" },
      { path: "^src/hop/" },
    ),
    forbid(
      "only-price-feeds-import-chain",
      "prices are chosen among documents; only the one of Chainlink is read from chains",
      { path: "^src/prices/", pathNot: "^src/prices/read-chainlink-" },
      { path: "^src/chain/" },
    ),
    forbid(
      "hop-imports-no-prices",
      "contracts and settings do not depend on prices",
      { path: "^src/hop/" },
      { path: "^src/prices/" },
    ),
    forbid(
      "resilience-imports-nothing",
      "limiters, caches and timeouts are generic: they import only each other and the error type",
      { path: RESILIENCE },
      { path: "^(src|gen)/", pathNot: [RESILIENCE, "^src/errors\\.ts$"] },
    ),
    forbid(
      "shared-state-imports-only-resilience",
      "it passes text between processes and knows neither its meaning nor who uses it",
      { path: "^src/shared-state/" },
      { path: "^(src|gen)/", pathNot: ["^src/shared-state/", RESILIENCE, "^src/errors\\.ts$"] },
    ),
    forbid(
      "errors-import-nothing",
      "every layer uses the error type",
      { path: "^src/errors\\.ts$" },
      { path: "^(src|gen)/" },
    ),

    // Composition.
    forbid(
      "layers-import-no-composition",
      "app connects the layers; what they need of the configuration reaches them as arguments",
      { path: ["^src/(http|operations)/", DOMAIN, INTEGRATIONS, RESILIENCE, "^src/errors\\.ts$"] },
      { path: COMPOSITION },
    ),
    forbid(
      "app-imports-no-command",
      "commands start the service, not the other way round",
      { path: "^src/app/" },
      { path: "^src/(commands/|main\\.ts$)" },
    ),
    forbid(
      "observability-imports-no-app",
      "logs, metrics and traces are given to the service; they do not know how it is assembled",
      { path: "^src/observability/" },
      { path: "^src/(app|commands|operations)/|^src/main\\.ts$" },
    ),
    forbid(
      "config-imports-no-service",
      "the configuration can be loaded without the service",
      { path: "^src/config/" },
      { path: "^src/(app|commands|observability|http|operations|quotes)/|^src/main\\.ts$" },
    ),
    forbid(
      "client-imports-no-service",
      "the client runs in browsers, so it imports only what is pure: encoding, hashing and Hop's addresses",
      { path: "^src/client(/|\\.ts$)" },
      {
        path: "^src/|^gen/hop/sdk-config\\.ts$",
        pathNot: [
          "^src/(client/|(client|errors)\\.ts$)",
          "^src/(chain/hex|chain/abi/abi-encoding|hop/(cctp|merkle-tree|settlement))\\.ts$",
        ],
      },
    ),

    // Inside the layers.
    forbid(
      "quote-math-is-pure",
      "the arithmetic of a quote needs no network, clock, SDK or ethers",
      { path: "^src/quotes/math/" },
      { pathNot: "^src/quotes/math/" },
    ),
    forbid(
      "quote-state-imports-no-engine",
      "the engines use the chain state, not the other way round",
      { path: "^src/quotes/state/" },
      { path: "^src/quotes/[^/]+\\.ts$" },
    ),
    forbid(
      "transfer-status-is-pure",
      "the rules of a status need no network and no clock",
      { path: "^src/transfers/status\\.ts$" },
      { pathNot: "^src/transfers/status\\.ts$", dependencyTypesNot: ["type-only"] },
    ),
    forbid(
      "only-hop-imports-the-sdk",
      "the SDK is heavy and has many quirks, which src/hop/ hides",
      { path: "^src/", pathNot: "^src/hop/" },
      { path: "node_modules/@hop-protocol/" },
    ),

    // Start time.
    forbid(
      "main-loads-commands-on-demand",
      "a command starts faster without the modules of the others",
      { path: "^src/main\\.ts$" },
      { path: "^src/", pathNot: "^src/commands/command-line\\.ts$", dynamic: false },
    ),
    forbid(
      "tracing-loads-on-demand",
      "the service starts faster without OpenTelemetry, which is loaded where traces are configured",
      { path: "^src/" },
      {
        path: "^src/observability/tracing\\.ts$",
        dynamic: false,
        dependencyTypesNot: ["type-only"],
      },
    ),
    forbid(
      "packages-load-in-part-or-on-demand",
      "the service starts faster with the parts of undici in src/resilience/http-client/undici.ts, and without what most requests do not need",
      { path: "^src/", pathNot: "^src/resilience/http-client/undici\\.ts$" },
      {
        path: "node_modules/(undici|rate-limiter-flexible|pino|prom-client)/",
        dynamic: false,
        dependencyTypesNot: ["type-only"],
      },
    ),

    // Packages and other folders.
    forbid(
      "service-imports-no-tooling",
      "the service runs without the local network, tests, benchmarks and generators",
      { path: "^src/" },
      { path: "^(devnet|test|bench|openapi|web|examples|packaging)/" },
    ),
    forbid(
      "packages-are-declared",
      "every imported package is in package.json",
      { path: "^(src|devnet)/" },
      { dependencyTypes: ["npm-no-pkg", "npm-unknown"] },
    ),
    forbid(
      "service-imports-no-dev-package",
      "the service runs without devDependencies",
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
