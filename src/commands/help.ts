import { ENVIRONMENT_VARIABLES } from "../config/environment-table.js";
import { type CommandName, DEFAULT_CHECK_TIMEOUT_SECONDS } from "./command-line.js";

const OVERVIEW = `hop-gateway: quotes, transfer status and routes of the Hop v1 bridge over gRPC, gRPC-Web, Connect and GET with JSON, on one port. It only reads from the chains and never sends transactions.

  hop-gateway [serve]     serves; prints its address once it listens; SIGTERM and SIGINT stop it
  hop-gateway check       tests every RPC endpoint and reports whether the service can work with it
  hop-gateway index       fills the transfer index with past transfers
  hop-gateway --help      prints this text; after a command, the options of that command
  hop-gateway --version   prints the version

Exit code: 0 success, 1 failure, 2 unknown command or option.
`;

const ENVIRONMENT_INTRO = `The service is configured by environment variables. All of them are optional; an invalid value prevents the start.
`;

const COMMAND_USAGES: Readonly<Record<Exclude<CommandName, "serve">, string>> = {
  check: `Tests every RPC endpoint of every chain, all at the same time, and reports whether the service can work with it.

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

An endpoint that throttles 40 calls at the same time is named below the table, with a value for RPC_BUDGET.

If the service is running on this machine with the same METRICS_HOST and METRICS_PORT, the quotes that it found to differ from the SDK's are listed; --json prints them with all their inputs (differences).

Exit code: 0 every chain has a usable endpoint, 1 a chain has none or an endpoint serves another chain, 2 invalid option or configuration.
`,
  index: `Fills the transfer index with the past transfers of mainnet's chains.

  hop-gateway index [--from <start>]
  hop-gateway index --copy-from sqlite:<file>

  --from      where the index begins: a date (2024-01-01, or 2024-01-01T12:00Z), blocks of single chains (ethereum:19000000), or both, comma-separated; default: INDEX_FROM, or else 7 days ago
  --copy-from   copies an index file to the empty index in PostgreSQL that INDEX names, instead of reading the chains; the file may be in use, the replicas of the new index must not run yet

Reads INDEX and RPC_URL_<CHAIN> from the environment. It can run while the service is running. It can be interrupted (Ctrl-C) and started again at any time: it continues where it stopped.

Exit code: 0 the index is complete, 1 it is not, 2 invalid option.
`,
};

/** Fewer columns than this are treated as this many. */
const MIN_COLUMNS = 40;

/**
 * Returns the output of `--help`, or of the help of a command.
 * @param columns width of the terminal, to which the text is wrapped
 */
export function formatHelp(command: CommandName | undefined, columns: number): string {
  const width = Math.max(columns, MIN_COLUMNS);
  if (command === "check" || command === "index") return wrapText(COMMAND_USAGES[command], width);
  const variables = ENVIRONMENT_VARIABLES.map(({ name, defaultText, description }) => {
    const heading = wrapText(stripMarkdown(`  ${name} (default: ${defaultText})`), width);
    return `${heading}\n${wrapText(stripMarkdown(`      ${description}`), width)}`;
  });
  return `${wrapText(OVERVIEW, width)}\n${wrapText(ENVIRONMENT_INTRO, width)}\n${variables.join("\n")}\n`;
}

/** Removes the Markdown code marks. */
function stripMarkdown(text: string): string {
  return text.replaceAll("`", "");
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
