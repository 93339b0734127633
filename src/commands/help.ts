import { ENVIRONMENT_VARIABLES } from "../config/environment-table.js";
import type { EnvironmentVariable } from "../config/environment-variable.js";
import {
  type CommandName,
  DEFAULT_CHECK_TIMEOUT_SECONDS,
  DEFAULT_COMPARE_COUNT,
  DEFAULT_TOLERANCE_PERCENT,
} from "./command-line.js";

const OVERVIEW = `hop-gateway: quotes, transfer status and routes of the Hop v1 bridge over gRPC, gRPC-Web, Connect and GET with JSON, on one port. It only reads from the chains and never sends transactions.

  hop-gateway [serve]     serves; prints its address once it listens; SIGTERM and SIGINT stop it
  hop-gateway check       tests every RPC endpoint and what else the service uses
  hop-gateway compare     compares quotes with those of Hop's SDK
  hop-gateway replay      sends the same requests to another server and to this one, and compares the answers
  hop-gateway index       fills the transfer index with past transfers
  hop-gateway --help      prints this text; after a command, the options of that command; with --all, every variable
  hop-gateway --version   prints the version

Exit code: 0 success, 1 failure, 2 unknown command or option.
`;

const ENVIRONMENT_INTRO = `The service is configured by environment variables. All of them are optional; an invalid value prevents the start.
`;

/** The variables that most operators set, in the order of `--help`. */
const COMMON_VARIABLES: readonly string[] = [
  ...["HOST", "PORT", "RPC_URL_<SLUG>", "INDEX", "WORKERS", "SHARED_STATE", "IP_RATE_LIMIT_REQ_PER_SEC", "TRUST_PROXY"],
  ...["CUSTOM_RPC_URLS", "ASSETS_URL", "METRICS_PORT", "LOG_LEVEL"],
];

/** The groups of the others: a variable belongs to the first whose pattern its name matches. */
const VARIABLE_GROUPS: readonly (readonly [title: string, names: RegExp])[] = [
  ["RPC endpoints and chains", /^(?:GOERLI_)?RPC_|^MAX_BLOCK_/],
  ["Prices, settings and other hosts", /^(?:TOKEN_|PRICE_|EXPLORER_|ATTESTATION_)/],
  ["Quotes", /^QUOTE_/],
  ["Index", /^INDEX_/],
  ["Callers and limits", /^(?:IP_|CUSTOM_|REQUEST_|WATCH_)/],
  ["Operation", /^/],
];

const COMMAND_USAGES: Readonly<Record<Exclude<CommandName, "serve">, string>> = {
  check: `Tests every RPC endpoint of every chain and what else the service uses, all at the same time, and reports whether the service can work with it.

  hop-gateway check [--network mainnet|goerli] [--timeout <seconds>] [--json]

  --network   network to check (default: mainnet)
  --timeout   total time limit in seconds (default: ${DEFAULT_CHECK_TIMEOUT_SECONDS})
  --json      prints a JSON object instead of a table

The endpoints are those of RPC_URL_<CHAIN> and GOERLI_RPC_URL_<CHAIN>, or else the SDK's public list. An endpoint is named by its chain, its place in that list and six digits that tell URLs apart (optimism[1]#3fa92c), as in the log and the metrics. The digits differ from start to start, so that nobody can verify a guess of a URL by them. A - stands for an unknown value.

  chain id    id of the chain that the endpoint serves
  head, age   latest block of the endpoint, and its age
  lag         blocks behind the best endpoint of the chain; from 16 blocks or 30 s on, the endpoint is used last
  latency     median of three small calls
  batch       largest batch of calls that the endpoint accepts (at most 50 are tried)
  logs        largest block range in which the endpoint searches logs, as a transfer lookup does; all: the whole chain

An endpoint that throttles 40 calls at the same time is named below the tables, with a value for RPC_BUDGET.

The second table has the fee settings, the sources of prices and attestations, the explorer, the index, Redis, the limit of open files and the clock of this machine. The last lines can be copied into the environment: they mend what fails, or do without it.

Exit code: 0 every chain has a usable endpoint, 1 a chain has none, an endpoint serves another chain, or the fee settings or the index cannot be used, 2 invalid option or configuration.
`,
  compare: `Quotes with this service's engine and with Hop's SDK, both at the same block of each chain, and reports every value that differs.

  hop-gateway compare [--network mainnet|goerli] [--routes <token:from:to,...>] [--amounts <amount,...>] [--count <number>] [--json]

  --network   network to compare on (default: mainnet)
  --routes    routes to compare, such as USDC:arbitrum:base,ETH:optimism:polygon (default: random open ones)
  --amounts   amounts in the token's smallest unit, each for every route (default: random ones)
  --count     number of quotes (default: one for each of the routes and amounts, ${DEFAULT_COMPARE_COUNT} without routes)
  --json      prints a JSON object instead of text

The endpoints are those of RPC_URL_<CHAIN> and GOERLI_RPC_URL_<CHAIN>, or else the SDK's public list; a quote takes some 20 calls. A quote that differs is compared again at newer blocks, and counts if it differs again: it is printed with all its inputs, which npm run golden:add in a checkout of the source makes a test of.

Exit code: 0 all quotes are equal, 1 a quote differs, 2 invalid option or configuration, 3 nothing could be compared.
`,
  replay: `Sends the same GET requests to two servers, such as the older server and this one, and reports by field how their answers differ.

  hop-gateway replay --old <URL> --new <URL> [--file <path>] [--tolerance <percent>] [--json]

  --old, --new   addresses of the servers, such as http://127.0.0.1:8000
  --file         file with one path a line, such as /v1/available-routes (default: all routes of the old server, each quoted with three usual amounts)
  --tolerance    by how many percent numbers that move with the chains may differ: the fields of a quote and those in dollars (default: ${DEFAULT_TOLERANCE_PERCENT})
  --json         prints a JSON object instead of text

A field of one answer alone is added or missing; a value has its relative size; Unix times of quotes may differ by a minute, hex in its case, errors of the same status in everything. A server that asks to wait (Retry-After) is asked again.

Exit code: 0 all answers are equal, 1 an answer differs, 2 invalid option or file, 3 nothing could be compared or every answer is an error.
`,
  index: `Fills the transfer index with the past transfers of mainnet's chains.

  hop-gateway index [--from <start>]

  --from      where the index begins: a date (2024-01-01, or 2024-01-01T12:00Z), blocks of single chains (ethereum:19000000), or both, comma-separated; default: INDEX_FROM, or else 7 days ago

Reads INDEX and RPC_URL_<CHAIN> from the environment. It can run while the service is running. It can be interrupted (Ctrl-C) and started again at any time: it continues where it stopped.

Exit code: 0 the index is complete, 1 it is not, 2 invalid option.
`,
};

/** Fewer columns than this are treated as this many. */
const MIN_COLUMNS = 40;

/**
 * Returns the output of `--help`, or of the help of a command.
 * @param columns width of the terminal, to which the text is wrapped
 * @param isAll whether the help lists every variable instead of the common ones
 */
export function formatHelp(command: CommandName | undefined, columns: number, isAll = false): string {
  const width = Math.max(columns, MIN_COLUMNS);
  if (command !== undefined && command !== "serve") return wrapText(COMMAND_USAGES[command], width);
  const common = COMMON_VARIABLES.flatMap(
    (name) => ENVIRONMENT_VARIABLES.find((variable) => variable.name === name) ?? [],
  );
  const others = ENVIRONMENT_VARIABLES.filter((variable) => !common.includes(variable));
  const findTitle = (name: string) => VARIABLE_GROUPS.find(([, names]) => names.test(name))?.[0];
  const groups = VARIABLE_GROUPS.map(
    ([title]) => [title, others.filter(({ name }) => findTitle(name) === title)] as const,
  );
  const rest = isAll
    ? groups.map(([title, variables]) => formatVariables(title, variables, width))
    : [wrapText(`hop-gateway --help --all lists ${others.length} more.\n`, width)];
  const parts = [
    wrapText(OVERVIEW, width),
    wrapText(ENVIRONMENT_INTRO, width),
    formatVariables("Common", common, width),
  ];
  return [...parts, ...rest].join("\n");
}

function formatVariables(title: string, variables: readonly EnvironmentVariable<unknown>[], width: number): string {
  const entries = variables.map(({ name, defaultText, description }) => {
    const heading = wrapText(stripMarkdown(`  ${name} (default: ${defaultText})`), width);
    return `${heading}\n${wrapText(stripMarkdown(`      ${description}`), width)}`;
  });
  return `${title}:\n${entries.join("\n")}\n`;
}

/** Removes the Markdown code marks, and puts the pages of `docs/` in the place of the links to them. */
function stripMarkdown(text: string): string {
  return text.replaceAll("`", "").replaceAll(/\[[^\]]+\]\(([^)#]+)[^)]*\)/g, "docs/$1");
}

/** Wraps long lines at spaces. Continuation lines are aligned with the text after the first column. */
function wrapText(text: string, width: number): string {
  return text
    .split("\n")
    .map((line) => wrapLine(line, width))
    .join("\n");
}

function wrapLine(line: string, width: number): string {
  const indent = /^ {2,}\S+(?: \S+)*? {2,}|^ */.exec(line)?.[0].length ?? 0;
  const lines: string[] = [];
  let current = line.slice(0, indent);
  for (const word of line.slice(indent).split(" ")) {
    const isFirst = current.length <= indent;
    if (!isFirst && current.length + 1 + word.length > width) {
      lines.push(current);
      current = " ".repeat(indent) + word;
    } else current += isFirst ? word : ` ${word}`;
  }
  return [...lines, current].join("\n");
}
