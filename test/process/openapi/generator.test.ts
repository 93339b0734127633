import { mkdtemp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { useTemporaryFolder } from "../../support/temporary-folder.js";
import { buildPlugin, generateOpenApi, generateOpenApiWith } from "./run-plugin.js";

const folder = useTemporaryFolder();
const newFolder = () => mkdtemp(join(folder(), "contract-"));
const committed = () => readFile(new URL("../../../gen/openapi.json", import.meta.url), "utf8");

/** A description, without a type: every test looks at another corner of it. */
// biome-ignore lint/suspicious/noExplicitAny: as said
type Description = any;

let plugin: string;
beforeAll(async () => {
  plugin = await buildPlugin("openapi-generator");
}, 120_000);

test("gen/openapi.json is what the plugin makes of proto/, to the byte and each time", async () => {
  const [first, second] = [
    await generateOpenApi(plugin, await newFolder()),
    await generateOpenApi(plugin, await newFolder()),
  ];
  expect(first).toBe(await committed());
  expect(second).toBe(first);
  expect(first.endsWith("}\n")).toBe(true);
});

describe("our contract", () => {
  let description: Description;
  beforeAll(async () => {
    description = JSON.parse(await committed());
  });
  const parameters = (path: string): Description[] => description.paths[path].get.parameters;

  test("has its three operations, described by their comments", () => {
    expect(Object.keys(description.paths)).toEqual(["/v1/quote", "/v1/transfer-status", "/v1/available-routes"]);
    expect(description.paths["/v1/quote"].get).toMatchObject({
      operationId: "getQuote",
      tags: ["BridgeService"],
      summary: "Estimates what a transfer costs and what arrives",
      description: expect.stringContaining('`estimatedReceived` is "0".'),
    });
  });

  test("a parameter has its constraints, its example and what stands for it where it is empty", () => {
    expect(parameters("/v1/quote")).toMatchObject([
      { name: "amount", required: true, schema: { $ref: "#/components/schemas/Amount" }, example: "25000000" },
      { name: "token", required: true },
      { name: "fromChain", required: true },
      { name: "toChain", required: true },
      { name: "slippage", required: true, schema: { $ref: "#/components/schemas/Percent" }, example: 0.5 },
      { name: "network", schema: { $ref: "#/components/schemas/Network", default: "mainnet" } },
      { name: "rpcUrl" },
      ...["Refresh", "RequestId", "IfNoneMatch"].map((name) => ({ $ref: `#/components/parameters/${name}` })),
    ]);
    expect(description.components.schemas).toMatchObject({
      Amount: { type: "string", pattern: "^[1-9][0-9]{0,77}$" },
      Percent: { type: "number", format: "double", minimum: 0, exclusiveMaximum: 100 },
      Network: { type: "string", enum: ["mainnet", "goerli"] },
    });
  });

  test("a map is an object of which the chains are known", () => {
    const { schemas } = description.components;
    const [rpcUrl] = parameters("/v1/quote").filter(({ name }) => name === "rpcUrl");
    expect(rpcUrl).toMatchObject({ in: "query", style: "deepObject", explode: true, example: {} });
    expect(Object.keys(rpcUrl.schema.properties)).toEqual(schemas.Chain.enum);
    expect(rpcUrl.schema.properties.base).toEqual({ $ref: "#/components/schemas/RpcUrl" });
    expect(rpcUrl.schema.additionalProperties).toBe(false);
  });

  test("every field of an answer is required; enums have no value that is never answered", () => {
    const { schemas } = description.components;
    const status = schemas.GetTransferStatusResponse;
    expect(status.required).toEqual(Object.keys(status.properties));
    expect(status.required).toHaveLength(23);
    expect(status.properties.timestamp).toMatchObject({ $ref: "#/components/schemas/UnixTime" });
    expect(schemas.UnixTime).toMatchObject({ type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
    expect(schemas.GetTransferStatusResponseState.enum).toEqual(["PENDING", "BONDED", "UNBONDABLE"]);
    const orNone = [{ $ref: "#/components/schemas/Address" }, { type: "string", const: "" }];
    expect(status.properties.bonderAddress.anyOf).toEqual(orNone);
    expect(schemas.GetTransferStatusResponseState.description).toMatch(/^What became of a transfer\.\n\n- `PENDING`/);
  });

  test("an answer of which one field alone is printed is that field", () => {
    const { content } = description.paths["/v1/available-routes"].get.responses[200];
    expect(content["application/json"].schema).toEqual({
      type: "array",
      items: { $ref: "#/components/schemas/Route" },
    });
    expect(content["application/json"].example).toMatchObject([{ token: "rETH", sourceChainId: 10 }]);
    expect(description.components.schemas).not.toHaveProperty("ListAvailableRoutesResponse");
  });

  test("errors come with their reasons, and a method's own only with that method", () => {
    const { responses, schemas } = description.components;
    const { schema, examples } = responses.ServiceUnavailable.content["application/json"];
    expect(schema.allOf).toEqual([
      { $ref: "#/components/schemas/Error" },
      {
        type: "object",
        properties: {
          code: { type: "string", enum: ["resource_exhausted", "unavailable"] },
          reason: { type: "string", enum: ["OVERLOADED", "UPSTREAM_UNAVAILABLE"] },
        },
      },
    ]);
    expect(Object.keys(examples)).toEqual(["OVERLOADED", "UPSTREAM_UNAVAILABLE"]);
    expect(responses.TooManyRequests.headers).toHaveProperty("Retry-After");
    expect(schemas.Error.required).toEqual(["code", "message", "error", "reason"]);
    const statuses = (path: string) => Object.keys(description.paths[path].get.responses).map(Number);
    const common = [400, 405, 408, 414, 429, 431, 500, 503, 504];
    expect(statuses("/v1/quote")).toEqual([200, 304, ...common]);
    expect(statuses("/v1/transfer-status")).toEqual([200, 304, 400, 404, ...common.slice(1)]);
  });

  test("what a method says beside its message is a header of its answer", () => {
    const { headers } = description.paths["/v1/transfer-status"].get.responses[200];
    expect(headers.Source.schema).toEqual({ type: "string", enum: ["chain", "index", "explorer"] });
    expect(headers["Observed-At"].schema).toEqual({ type: "string", format: "date-time" });
    expect(description.paths["/v1/quote"].get.responses[200].headers).not.toHaveProperty("Source");
  });

  test("of some parameters one at least is required", () => {
    const { get } = description.paths["/v1/transfer-status"];
    expect(get["x-at-least-one-of"]).toEqual(["transferId", "transferHash", "transactionHash"]);
    expect(get.description).toContain("At least one of `transferId`, `transferHash`, `transactionHash` is required.");
  });
});

describe("a contract that the plugin has never seen", () => {
  const header = `// A library.
syntax = "proto3";
package library.v1;
import "google/api/annotations.proto";
import "hop/rules/v1/rules.proto";
option (hop.rules.v1.kind) = {name: "Shelf", description: "A shelf.", pattern: "^[A-Z]$", example: "B"};
`;
  const proto = `${header}
// Knows books.
service LibraryService {
  // Finds a book. The \`first_edition\` comes first.
  //
  // Slowly.
  rpc FindBook(FindBookRequest) returns (Book) {
    option (google.api.http) = {get: "/v1/book" additional_bindings {get: "/v1/old/book"}};
  }
  // Has no path.
  rpc Hidden(FindBookRequest) returns (Book);
}
message FindBookRequest {
  // Where.
  repeated string shelves = 1 [(hop.rules.v1.field) = {kind: "Shelf"}];
  // How old at most.
  optional int32 years = 2;
  // Which binding.
  Binding binding = 3;
  // Notes by page.
  map<int32, string> notes = 4;
}
// How it is bound.
enum Binding {
  // Not said.
  BINDING_UNSPECIFIED = 0;
  // In cloth.
  CLOTH = 1;
}
// A book.
message Book {
  // Its number.
  uint64 number = 1;
  // Its weight.
  double weight = 2;
  // Pages read.
  map<string, bool> read = 3;
  // Its cover.
  bytes cover = 4;
  // Chapters.
  repeated Chapter chapters = 5;
  // How it is bound.
  Binding binding = 6;
  oneof owner {
    // A person.
    string person = 7;
    // A club.
    string club = 8;
  }
  // A chapter.
  message Chapter {
    // Its title.
    string title = 1;
  }
}
`;
  const generated = async (text: string): Promise<Description> =>
    JSON.parse(await generateOpenApiWith(plugin, await newFolder(), "library/v1/library.proto", text));

  test("is described beside ours, with no code for it", async () => {
    const { paths, components, tags, info } = await generated(proto);
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(["/v1/quote", "/v1/book", "/v1/old/book"]));
    expect(tags).toContainEqual({ name: "LibraryService", description: "Knows books." });
    expect(info.description).toContain("A library.");
    const { get } = paths["/v1/book"];
    expect(get).toMatchObject({ operationId: "findBook", summary: "Finds a book" });
    expect(get.description).toBe("Finds a book. The `firstEdition` comes first.\n\nSlowly.");
    expect(paths["/v1/old/book"].get.operationId).not.toBe("findBook");
    expect(get.parameters.slice(0, 4)).toEqual([
      {
        ...{ name: "shelves", in: "query", description: "Where." },
        schema: { type: "array", items: { $ref: "#/components/schemas/Shelf" } },
        example: ["B"],
      },
      { name: "years", in: "query", description: "How old at most.", schema: { type: "integer", format: "int32" } },
      { name: "binding", in: "query", description: "Which binding.", schema: { $ref: "#/components/schemas/Binding" } },
      {
        ...{ name: "notes", in: "query", description: "Notes by page.", style: "deepObject", explode: true },
        schema: { type: "object", additionalProperties: { type: "string" } },
        example: {},
      },
    ]);
    expect(components.schemas.Binding.enum).toEqual(["CLOTH"]);
    expect(components.schemas.Shelf).toMatchObject({ type: "string", pattern: "^[A-Z]$", examples: ["B"] });
    const { Book } = components.schemas;
    expect(Book.required).toEqual(["number", "weight", "read", "cover", "chapters", "binding"]);
    expect(Book.properties).toMatchObject({
      number: { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: "Its number." },
      weight: { type: "number", format: "double" },
      read: { type: "object", additionalProperties: { type: "boolean" } },
      cover: { type: "string", contentEncoding: "base64" },
      chapters: { type: "array", items: { $ref: "#/components/schemas/BookChapter" } },
      person: { type: "string" },
      club: { type: "string" },
    });
    expect(get.responses[200].content["application/json"]).toEqual({
      schema: { $ref: "#/components/schemas/Book" },
      example: {
        ...{ number: 0, weight: 0, read: {}, cover: "", chapters: [{ title: "" }], binding: "CLOTH" },
        person: "",
      },
    });
  });

  test.each([
    ["a field of a kind that there is not", 'shelf = 1 [(hop.rules.v1.field) = {kind: "Room"}]', "kind Room"],
    ["a name for two schemas", 'shelf = 1 [(hop.rules.v1.field) = {kind: "Book"}]', "two schemas want the name Book"],
  ])("is refused with %s", async (_, field, said) => {
    const broken = `${header}
option (hop.rules.v1.kind) = {name: "Book"};
// Knows books.
service LibraryService {
  // Finds.
  rpc FindBook(FindBookRequest) returns (Book) { option (google.api.http) = {get: "/v1/book"}; }
}
message FindBookRequest { string ${field}; }
message Book {}
`;
    await expect(generated(broken)).rejects.toThrow(said);
  });

  test.each([
    ["a reason that nothing fails with", 'option (hop.rules.v1.method) = {reasons: "BORED"};', "", "no reason BORED"],
    [
      "a rule for a field that there is not",
      "",
      'option (hop.rules.v1.message) = {at_least_one_of: "x"};',
      "no field x",
    ],
  ])("is refused with %s", async (_, ofMethod, ofMessage, said) => {
    const broken = `${header}
// Knows books.
service LibraryService {
  // Finds.
  rpc FindBook(FindBookRequest) returns (Book) {
    option (google.api.http) = {get: "/v1/book"};
    ${ofMethod}
  }
}
message FindBookRequest { ${ofMessage} }
message Book {}
`;
    await expect(generated(broken)).rejects.toThrow(said);
  });
});
