import { ENVIRONMENT_VARIABLES } from "../config/environment-table.js";
import { type CommandName, DEFAULT_CHECK_TIMEOUT_SECONDS } from "./command-line.js";

const OVERVIEW = `hop-gateway: quotes, transfer status and routes of the Hop v1 bridge over gRPC, gRPC-Web, Connect and GET with JSON, on one port. It reads and never sends.

  hop-gateway [serve]     serves; prints its address once it listens; SIGTERM and SIGINT stop it
  hop-gateway check       asks every RPC endpoint what it can do, and says whether that is enough
  hop-gateway index       fills the index of transfers with the past
  hop-gateway --help      this text; after a command, what that takes
  hop-gateway --version   the version

Exit code: 0 all went well, 1 it did not, 2 no such command or option.
`;

const ENVIRONMENT_INTRO = `The environment configures it. All of it is optional; a wrong value stops the start.
`;

const COMMAND_USAGES: Readonly<Record<Exclude<CommandName, "serve">, string>> = {
  check: `Asks every RPC endpoint of every chain what it can do, all at the same time, and says whether that is enough.

  hop-gateway check [--network mainnet|goerli] [--timeout <seconds>] [--json]

  --network   whose chains (mainnet)
  --timeout   most seconds for all of it (${DEFAULT_CHECK_TIMEOUT_SECONDS})
  --json      prints an object for machines instead of a table

Endpoints are those of RPC_URL_<CHAIN> and GOERLI_RPC_URL_<CHAIN>, or else the SDK's public list. They are shown as their host and six digits that stand for the URL. The log says both, the metrics the digits. A - is what is not known.

  chain id    of the chain that it serves
  head, age   its newest block, and how old that was
  lag         blocks behind the best endpoint of the chain; 16 blocks or 30 s: it is asked last
  latency     median of three small calls
  batch       most calls that it took in one request (50 are not exceeded)
  logs        most blocks of which it searched the logs at once, as a look-up of a transfer does; all: the chain

Exit code: 0 every chain has an endpoint that will do, 1 a chain has none, or an endpoint serves another chain, 2 a wrong option or configuration.
`,
  index: `Fills the index of transfers with the past of mainnet's chains.

  hop-gateway index [--from <beginning>]

  --from      how far back: a date (2024-01-01, or 2024-01-01T12:00Z), the blocks of single chains (ethereum:19000000), or both with commas between them; default: INDEX_FROM, or else 7 days ago

Reads INDEX=sqlite:<file> and RPC_URL_<CHAIN> from the environment. May run beside the service, and be ended (Ctrl-C) and started again at any time: it goes on where it ended.

Exit code: 0 all of it is there, 1 it is not, 2 a wrong option.
`,
};

/** What `--help` prints. @param columns of the terminal; what is wider is wrapped */
export function formatHelp(command: CommandName | undefined, columns: number): string {
  const width = Math.max(columns, MIN_COLUMNS);
  if (command === "check" || command === "index") return wrapText(COMMAND_USAGES[command], width);
  const listed = ENVIRONMENT_VARIABLES.map(({ name, defaultText, description }) => {
    const head = wrapText(stripMarkdown(`  ${name} (default: ${defaultText})`), width);
    return `${head}\n${wrapText(stripMarkdown(`      ${description}`), width)}`;
  });
  return `${wrapText(OVERVIEW, width)}\n${wrapText(ENVIRONMENT_INTRO, width)}\n${listed.join("\n")}\n`;
}

/** Fewer columns than these are not wrapped for. */
const MIN_COLUMNS = 40;

/** Without the marks of Markdown. */
function stripMarkdown(text: string): string {
  return text.replaceAll("`", "");
}

/** Breaks lines that are too long at spaces, and goes on under the text of the line: behind what stands in its first column. */
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
