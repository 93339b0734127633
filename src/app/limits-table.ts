import { DEFAULT_CUSTOM_ENDPOINT_LIMITS } from "../chain/custom-endpoints/custom-endpoints.js";
import { BYTES_PER_MEMBER, MEMBERS_PER_CALL } from "../chain/json-rpc/rpc-codec.js";
import { loadConfig } from "../config/config.js";
import { MAX_LEAVES } from "../hop/settlement.js";
import { MAX_REQUESTS_PER_TURN, MAX_WAITING_REQUESTS } from "../http/admission/read-turns.js";
import { MAX_REQUEST_DEPTH, MAX_REQUEST_MEMBERS } from "../http/codec/message-limits.js";
import { DEFAULT_HTTP_LIMITS as HTTP, HTTP1_STREAM_CONNECTION_SHARE } from "../http/connection/http-limits.js";
import { MAX_QUOTES_PER_BATCH } from "../operations/quotes/quote-request.js";
import { MAX_PRICE_AGE_MS } from "../prices/price-source.js";
import { MAX_WAITING } from "../resilience/fair-semaphore.js";
import { MAX_DEPTH } from "../resilience/http-client/fetch-json.js";
import {
  CALLER_LOOKUP_RATE,
  EXHAUSTED_PAUSE_MS,
  FREE_REQUESTS_PER_LOOKUP,
  MAX_LOG_SEARCHES_PER_CALLER,
  MAX_REQUESTS_FOR_UNTRUSTED_RECEIPT,
  MAX_REQUESTS_PER_CHAIN,
  MAX_REQUESTS_PER_LOOKUP,
  PROCESS_RATE,
  REQUESTS_AFTER_SEARCH,
} from "../transfers/spend/lookup-budget.js";
import { MAX_HISTORY } from "../transfers/watch/change-history.js";
import { MAX_FOLLOWED, MAX_UNKNOWN } from "../transfers/watch/followers.js";
import { MAX_WATCHED_TARGETS } from "../transfers/watch/transfer-watcher.js";
import { MAX_TRANSFERS_PER_TRANSACTION } from "../transfers/watch/watch-lookups.js";
import { INITIAL_TRANSFER_COUNT } from "../transfers/watch/watched-accounts.js";

const HALF = "at most half for one caller";
const DEFAULTS = loadConfig({});

/**
 * The limits of one process by group, as Markdown; first those that callers meet. docs/limits.md is generated from the table
 * by `npm run docs:limits`.
 */
export const LIMITS: readonly {
  readonly title: string;
  readonly limits: readonly {
    readonly name: string;
    readonly value: string;
    /** What happens beyond the limit. */
    readonly effect: string;
    readonly metrics?: readonly string[];
  }[];
}[] = [
  {
    title: "What callers meet",
    limits: [
      {
        name: "requests of one caller",
        value: "`IP_RATE_LIMIT_REQ_PER_SEC` (off) per `IP_RATE_LIMIT_WINDOW_MS`",
        effect: "`RATE_LIMITED` with `Retry-After`",
      },
      {
        name: "time for a response",
        value: `\`REQUEST_TIMEOUT_MS\` (${time(DEFAULTS.requestTimeoutMs)}), or the caller's deadline if that is earlier`,
        effect: "`DEADLINE_EXCEEDED`",
      },
      {
        name: "URL; headers; number of headers; message, also after decompression",
        value: list(bytes(HTTP.urlBytes), bytes(HTTP.headerBytes), count(HTTP.headers), bytes(HTTP.requestBytes)),
        effect: "414; 431; 431; 413 or `resource_exhausted`",
      },
      {
        name: "quotes of one batch; members of any request, those of its parts included; nesting",
        value: list(count(MAX_QUOTES_PER_BATCH), count(MAX_REQUEST_MEMBERS), count(MAX_REQUEST_DEPTH)),
        effect: "`INVALID_PARAMETER`, before the remainder is read",
      },
      {
        name: "transfers of one page; other transfers of their transactions",
        value: "1,000, with `view=FULL` 100; 10,000",
        effect: "`INVALID_PARAMETER`; the page is shorter and `nextPageToken` goes on",
      },
      {
        name: "transfers of one watch; transfers of one transaction",
        value: `100, over GET 50; ${count(MAX_TRANSFERS_PER_TRANSACTION)}`,
        effect: "`INVALID_PARAMETER`; the others are left out",
      },
      {
        name: "open watches of the process; of one caller",
        value:
          `\`WATCH_MAX_STREAMS\` (${count(DEFAULTS.watchMaxStreams)}); ` +
          `\`WATCH_MAX_PER_CALLER\` (${count(DEFAULTS.watchMaxPerCaller)})`,
        effect: "`OVERLOADED`; `RATE_LIMITED`, both with `Retry-After`",
        metrics: ["hop_gateway_watches"],
      },
      {
        name: "life of a watch; age of a resume token",
        value: `\`WATCH_MAX_SECONDS\` (${count(DEFAULTS.watchMaxSeconds)}), up to a tenth less; 24 h`,
        effect: "the watch ends with a bookmark, to be resumed; all present states are sent again",
      },
      {
        name: "`rpcUrl[...]` endpoints in use; of one caller",
        value:
          `\`CUSTOM_RPC_MAX_ENDPOINTS\` (${DEFAULT_CUSTOM_ENDPOINT_LIMITS.total}); ` +
          `\`CUSTOM_RPC_MAX_PER_CALLER\` (${DEFAULT_CUSTOM_ENDPOINT_LIMITS.perCaller})`,
        effect: "`OVERLOADED`; `RATE_LIMITED`",
        metrics: ["hop_gateway_custom_endpoints"],
      },
      {
        name: "age of the newest block of a chain",
        value: "`MAX_BLOCK_AGE_MS` (20 blocks, at least 2 minutes; 15 minutes on arbitrum, nova and polygonzk)",
        effect: "`CHAIN_STALLED` for quotes on its routes",
        metrics: ["hop_gateway_chain_stalled"],
      },
    ],
  },
  {
    title: "Connections and streams",
    limits: [
      {
        name: "connections; those that wait to be accepted",
        value: `${count(HTTP.connections)}, and 80 % of the open-file limit; ${count(HTTP.acceptQueue)}, or \`net.core.somaxconn\``,
        effect:
          "the caller with the most connections loses its longest idle one; the client tries again after a second",
      },
      {
        name: "time to receive headers; a whole request; to read a response",
        value:
          `${time(HTTP.headersMs)}; ${time(HTTP.requestMs)}; ${time(HTTP.responseMs)}, ` +
          `or longer at ${bytes(HTTP.minBytesPerSecond)} per second`,
        effect: "408, or the stream or connection is closed",
        metrics: ['hop_gateway_limit_cuts_total{cause="response_deadline"}'],
      },
      {
        name: "concurrent requests of one HTTP/2 connection; of all; that begin in one turn of the event loop; that wait for theirs",
        value:
          `${count(HTTP.concurrentStreams)}; ${count(HTTP.totalStreams)}, ${HALF}; ` +
          `${count(MAX_REQUESTS_PER_TURN)}; ${count(MAX_WAITING_REQUESTS)}`,
        effect:
          "the stream is refused before any work (REFUSED_STREAM), a connection that goes on is closed; " +
          "beyond the third, connections are read in turns, beyond the last, those that brought many stay unread",
        metrics: ["hop_gateway_http2_streams", 'hop_gateway_limit_cuts_total{cause="open_streams"}'],
      },
      {
        name: "unanswered pipelined requests of one HTTP/1.1 connection; of all beyond the first of each",
        value: `${count(HTTP.pipelinedRequests)}; ${count(HTTP.totalPipelinedRequests)}`,
        effect: "further requests stay unread until a response is sent",
        metrics: ["hop_gateway_pipelined_requests"],
      },
      {
        name: "bytes that callers have not read, and bytes of requests that this process has not read",
        value: bytes(HTTP.unsentBytes),
        effect: "the caller with the most bytes loses its largest connection",
        metrics: ["hop_gateway_unsent_bytes", 'hop_gateway_limit_cuts_total{cause="unsent_bytes"}'],
      },
      {
        name: "request bodies that are not complete",
        value: bytes(HTTP.receivedBytes),
        effect: "the caller with the most bytes loses its largest requests: `OVERLOADED`",
        metrics: ["hop_gateway_received_bytes", 'hop_gateway_limit_cuts_total{cause="received_bytes"}'],
      },
      {
        name: "bytes of an HTTP/2 stream that are sent before they are read; messages of one stream that wait",
        value: `${bytes(HTTP.streamWindowBytes)}; 4 KiB and one message`,
        effect: "flow control; the operation waits, and sends the newest state when the caller reads on",
      },
      {
        name: "open streams of operations; health watches; reflection and streams in unusual forms",
        value:
          `${count(HTTP.operationStreams)}, over HTTP/1.1 ${HTTP1_STREAM_CONNECTION_SHARE * 100} % of the connections; ` +
          `${count(HTTP.streamingCalls)}; ${count(HTTP.generalStreamingCalls)}; of each ${HALF}`,
        effect: "`OVERLOADED`, `RATE_LIMITED` with `Retry-After`",
        metrics: ["hop_gateway_streaming_calls"],
      },
      {
        name: "time to read a GOAWAY after a fatal error; at a stop; for a stream to end at a stop",
        value: "3 s; 5 s; 1 s",
        effect: "the connection is closed; later streams are refused; the stream ends without a last message",
        metrics: ["hop_gateway_connection_errors_total"],
      },
      {
        name: "port of the metrics: connections; time for a request, and for its response; rendering",
        value: "64; 10 s each; a tenth of the process's time",
        effect: "the oldest connection, or the one at fault, is closed; the scrape waits, 1 s at most",
      },
    ],
  },
  {
    title: "Work and memory",
    limits: [
      {
        name:
          "requests that wait for upstreams; quotes of batches that wait; wait of a request for the turn of its caller, " +
          "to whom the event loop gives as much time as to each other caller, and before requests that have taken more than 1 or 8 ms or are streams",
        value: `${count(HTTP.pendingCalls)}; 20,000; ${HALF} of each; 5 s`,
        effect: "`OVERLOADED`, with `Retry-After`; the last before the request is read, and never for a stream",
        metrics: [
          "hop_gateway_requests_pending",
          "hop_gateway_batch_quotes_pending",
          "hop_gateway_waiting_for_turn",
          'hop_gateway_limit_cuts_total{cause="event_loop"}',
        ],
      },
      {
        name: "transfer lookups and SDK quotes in progress",
        value: `as many as the event loop keeps up with; ${HALF}`,
        effect: "`OVERLOADED` before any request to a chain; cached answers are still served",
        metrics: ["hop_gateway_concurrency_limit"],
      },
      {
        name: "large or filtered pages of transfers that are being read",
        value: "4; 2 for one caller",
        effect: "the request waits; callers take turns",
      },
      {
        name: "watched transfers, each counted as often as it is watched; distinct ones; those that no source has seen",
        value: `${count(MAX_WATCHED_TARGETS)}; ${count(MAX_FOLLOWED)}; ${count(MAX_UNKNOWN)}; of each ${HALF}`,
        effect: "`OVERLOADED`, `RATE_LIMITED`",
        metrics: ["hop_gateway_followed_transfers"],
      },
      {
        name: "present states of one account watch; changes of the index that a process keeps",
        value: `the newest ${INITIAL_TRANSFER_COUNT}, and what can still change; ${count(MAX_HISTORY)}`,
        effect: "the others are in the list; who resumes later gets all present states",
        metrics: ["hop_gateway_watched_accounts"],
      },
      {
        name: "statuses kept, and their details",
        value: "10,000 of each, about 64 MiB; final ones for an hour; 1,000 withdrawals and attestations",
        effect: "the one that was not asked for the longest is looked up again",
      },
      {
        name: "log lines that wait to be written; at exit",
        value: "4 MiB; 3 s",
        effect: "the lines are lost and counted",
        metrics: ["hop_gateway_log_lines_lost_total"],
      },
    ],
  },
  {
    title: "Requests to the chains",
    limits: [
      {
        name: "requests of one lookup; with `rpcUrl[...]` to one chain",
        value:
          `${MAX_REQUESTS_PER_LOOKUP}, the last ${REQUESTS_AFTER_SEARCH} not for logs, ` +
          `\`RPC_QUORUM\` times as many; ${MAX_REQUESTS_PER_CHAIN}`,
        effect:
          `\`UPSTREAM_UNAVAILABLE\`; the same for ${time(EXHAUSTED_PAUSE_MS)}, ` +
          "then the next lookup goes on where this one stopped",
        metrics: ['hop_gateway_budgets_exhausted_total{budget="lookup"}'],
      },
      {
        name: `expensive requests (those of a lookup after its first ${FREE_REQUESTS_PER_LOOKUP}) of one caller; of all`,
        value:
          `${count(CALLER_LOOKUP_RATE.capacity)} at once, ${CALLER_LOOKUP_RATE.refillPerSecond} per second; ` +
          `${count(PROCESS_RATE.capacity)} at once, ${PROCESS_RATE.refillPerSecond} per second`,
        effect: "`RATE_LIMITED`; `OVERLOADED`, both with `Retry-After`",
        metrics: ['hop_gateway_budgets_exhausted_total{budget="caller"|"process"}'],
      },
      {
        name:
          "log searches at the same time on one chain; log scans in the background; lookups for watches; those of each that " +
          "wait",
        value:
          `${MAX_LOG_SEARCHES_PER_CALLER}; 8; 8 for one caller, twice as many for all; ` +
          `${count(MAX_WAITING)}, at most half for one caller`,
        effect: "they wait; callers take turns; beyond that `OVERLOADED`",
      },
      {
        name: "a transfer that does not exist; events of one transaction whose transfers are searched; transfers of one root",
        value: `one lookup in 5 s; 16; ${count(MAX_LEAVES)}`,
        effect:
          "`TRANSFER_NOT_FOUND` without a request; the others are left out; " +
          "`UPSTREAM_UNAVAILABLE` (no bridge collects more than 1,024)",
      },
      {
        name: "requests to the operator's endpoints because of a receipt from the caller's own endpoint",
        value: count(MAX_REQUESTS_FOR_UNTRUSTED_RECEIPT),
        effect: "`UPSTREAM_UNAVAILABLE`",
      },
      {
        name: "questions of one poll of a chain for all watched transfers",
        value: "200, every block but at most every 2 s",
        effect: "the others wait for the next poll",
        metrics: ["hop_gateway_watch_polls_total"],
      },
      {
        name: "attempts of one request to a chain's configured endpoints; time of a request",
        value: "3, and repetitions of late ones; 95 % of `REQUEST_TIMEOUT_MS`",
        effect: "`UPSTREAM_UNAVAILABLE`",
      },
      {
        name:
          "requests to all configured endpoints that wait for a response; responses that are being read; " +
          "their members; their nesting",
        value:
          "2,048; 64 MiB together, 16 MiB each; at most half for one endpoint; " +
          `${MEMBERS_PER_CALL} for each call and one for each ${BYTES_PER_MEMBER} bytes; ${MAX_DEPTH}`,
        effect: "another endpoint of the chain; without one `OVERLOADED` or `UPSTREAM_UNAVAILABLE`",
        metrics: ["hop_gateway_upstream_requests_in_flight"],
      },
      {
        name: "calls per second to one configured endpoint",
        value: "`RPC_BUDGET` (off), half a second's worth at once",
        effect: "another endpoint gets the request, or it waits for up to 5 s; then `OVERLOADED`",
        metrics: ["hop_gateway_rpc_budget_limited_total"],
      },
      {
        name: "endpoints of a chain that have to agree",
        value: `\`RPC_QUORUM\` (${DEFAULTS.rpcQuorum})`,
        effect: "`UPSTREAM_UNAVAILABLE`; an endpoint that disagrees with the quorum is suspended for 30 s to 30 min",
        metrics: ["hop_gateway_quorum_reads_total", "hop_gateway_outvoted_total"],
      },
      {
        name: "reads of a stalled chain while quotes on its routes are requested",
        value: "one of its state, and one of each endpoint's head, every 1.5 s",
        effect: "quotes are refused until then",
      },
      {
        name: "`rpcUrl[...]` endpoints: connections; requests per second to one host, 20 for a response with too many members or levels; responses that are being read",
        value: `64, 16 to one host name; 200, 100 for one caller; 16 MiB, 1 MiB each; of each ${HALF}`,
        effect: "the request waits for up to a second, then `OVERLOADED` or `UPSTREAM_UNAVAILABLE`",
      },
    ],
  },
  {
    title: "Other systems",
    limits: [
      {
        name: "time for settings, prices, attestations and the explorer",
        value: "8 s each, repeated after 3 s; a withdrawal waits for an attestation for 30 to 60 % of its time",
        effect: "the last document, or `UPSTREAM_UNAVAILABLE`",
      },
      {
        name: "age of a price; a price in US dollars",
        value: `${time(MAX_PRICE_AGE_MS)}, of a feed its heartbeat and 15 minutes; below 1,000,000,000`,
        effect: "the next source; without one `UPSTREAM_UNAVAILABLE`",
        metrics: ["hop_gateway_price_feed_refused"],
      },
      {
        name: "difference between two sources of prices; change that only the preferred one makes",
        value: "2 %; 50 % within ten minutes",
        effect: "an alert; the other source's price is used",
        metrics: ["hop_gateway_price_difference_ratio", "hop_gateway_price_distrusted"],
      },
      {
        name: "connections to PostgreSQL for requests; time of a read",
        value: `\`INDEX_POOL_SIZE\` (10), ${HALF}; 1 s, of any statement \`INDEX_STATEMENT_TIMEOUT_MS\` (5 s)`,
        effect: "the request waits up to 2 s; then the status comes from the chains, a list is `UPSTREAM_UNAVAILABLE`",
        metrics: ["hop_gateway_index_database_connections", "hop_gateway_index_database_up"],
      },
      {
        name: "lease of the replica that follows the chains",
        value: "6 s after its last heartbeat",
        effect: "another replica follows the chains, and nothing that the first one writes is accepted",
        metrics: ["hop_gateway_index_leases_held"],
      },
      {
        name: "time that a request waits for Redis",
        value: "5 ms",
        effect: "the process reads and counts for itself",
      },
    ],
  },
];

function list(...values: readonly string[]): string {
  return values.join("; ");
}

function count(value: number): string {
  return value.toLocaleString("en");
}

function bytes(value: number): string {
  return value >= 1024 * 1024 ? `${value / (1024 * 1024)} MiB` : `${value / 1024} KiB`;
}

function time(ms: number): string {
  return ms >= 120_000 ? `${ms / 60_000} minutes` : `${ms / 1_000} s`;
}
