import { buildPath } from "./build-path.js";
import { buildGrpcurlCommand, escapeShellArgument, GRPC_METHODS } from "./shell-commands.js";

/** A request for a quote as query parameters. Empty ones are left out. */
export type QuoteQuery = Readonly<Record<string, string>>;

/**
 * Returns programs that ask for a quote, by language. They are those of docs/integrate.md.
 * @param origin of the service, without a slash at its end
 */
export function buildQuoteSnippets(origin: string, query: QuoteQuery): Readonly<Record<string, string>> {
  return {
    curl: `curl -sS --fail-with-body ${escapeShellArgument(origin + buildPath("/v1/quote", query))}`,
    TypeScript: buildTypeScript(origin, query),
    Python: buildPython(origin, query),
    Go: buildGo(origin, query),
    "buf curl": buildBufCurl(origin, query),
    grpcurl: buildGrpcurlCommand(origin, GRPC_METHODS.quote, toGrpcMessage(query)),
  };
}

/** Converts query parameters to the equivalent gRPC message in JSON. */
export function toGrpcMessage(query: QuoteQuery): Readonly<Record<string, unknown>> {
  const entries = Object.entries(query).filter(([, value]) => value !== "");
  // Anything that is not a plain number is passed on as it is: the service explains what is wrong with it.
  const isNumber = (name: string, value: string): boolean => name === "slippage" && /^[0-9]+(\.[0-9]+)?$/.test(value);
  return Object.fromEntries(entries.map(([name, value]) => [name, isNumber(name, value) ? Number(value) : value]));
}

/** What a program prints of the quote. */
function getAnswer(query: QuoteQuery): { readonly field: string; readonly text: string } {
  return query.receiveAmount === undefined
    ? { field: "estimatedReceived", text: "arrive" }
    : { field: "amountIn", text: "to send" };
}

function buildTypeScript(origin: string, query: QuoteQuery): string {
  const { field, text } = getAnswer(query);
  const members = Object.entries(toGrpcMessage(query)).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
  return `import { createBridgeClient } from "hop-gateway-client";

const bridge = createBridgeClient(${JSON.stringify(origin)});
const transfer = { ${members.join(", ")} };
const { ${field} } = await bridge.getQuote(transfer);
console.log(\`\${${field}} ${text}\`);`;
}

function buildPython(origin: string, query: QuoteQuery): string {
  const { field, text } = getAnswer(query);
  const members = Object.entries(toGrpcMessage(query)).map(([name, value]) => {
    const isAmount = name === "amount" || name === "receiveAmount";
    return `${JSON.stringify(name)}: ${isAmount ? value : JSON.stringify(value)}`;
  });
  return `import json
from urllib.parse import urlencode
from urllib.request import urlopen

BASE = ${JSON.stringify(origin)}


def get(path, **parameters):
    return urlopen(f"{BASE}{path}?{urlencode(parameters)}", timeout=45)


transfer = {${members.join(", ")}}
print(json.load(get("/v1/quote", **transfer))["${field}"], "${text}")`;
}

function buildGo(origin: string, query: QuoteQuery): string {
  const { field, text } = getAnswer(query);
  const name = field.charAt(0).toUpperCase() + field.slice(1);
  return `package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
)

const base = ${JSON.stringify(origin)}

// get returns the body of an answer; an error of the service has a reason.
func get(path string) io.ReadCloser {
	response, err := http.Get(base + path)
	if err != nil {
		log.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		log.Fatalf("%s: %s", response.Status, body)
	}
	return response.Body
}

func read(body io.Reader, answer any) {
	if err := json.NewDecoder(body).Decode(answer); err != nil {
		log.Fatal(err)
	}
}

func main() {
	var quote struct{ ${name} string }
	read(get(${JSON.stringify(buildPath("/v1/quote", query))}), &quote)
	fmt.Println(quote.${name}, "${text}")
}`;
}

function buildBufCurl(origin: string, query: QuoteQuery): string {
  // Without TLS, only a client that knows it can speak HTTP/2.
  const clearText = new URL(origin).protocol === "https:" ? [] : ["--http2-prior-knowledge"];
  const words = ["-d", JSON.stringify(toGrpcMessage(query)), `${origin}/${GRPC_METHODS.quote}`];
  return ["buf", "curl", "--protocol", "grpc", ...clearText, ...words].map(escapeShellArgument).join(" ");
}
