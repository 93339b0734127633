import { mkdtemp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { useTemporaryFolder } from "../../support/temporary-folder.js";
import { buildPlugin, generateOpenApi, generateOpenApiWith } from "./run-plugin.js";

const folder = useTemporaryFolder();
const newFolder = () => mkdtemp(join(folder(), "contract-"));
const committed = () => readFile(new URL("../../../gen/openapi.json", import.meta.url), "utf8");

/** An untyped OpenAPI document: every test reads another part of it. */
// biome-ignore lint/suspicious/noExplicitAny: see above
type Description = any;

let plugin: string;
beforeAll(async () => {
  plugin = await buildPlugin("openapi-generator");
});

test("generates gen/openapi.json from proto/ byte for byte, and the same on every run", async () => {
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

  test("describes the three operations by their comments", () => {
    expect(Object.keys(description.paths)).toEqual(["/v1/quote", "/v1/transfer-status", "/v1/available-routes"]);
    expect(description.paths["/v1/quote"].get).toMatchObject({
      operationId: "getQuote",
      tags: ["BridgeService"],
      summary: "Estimates the cost of a transfer and the amount received",
      description: expect.stringContaining('`estimatedReceived` is then "0".'),
    });
  });

  test("gives a parameter its constraints, example and default", () => {
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

  test("describes a map as an object with one property per chain", () => {
    const { schemas } = description.components;
    const [rpcUrl] = parameters("/v1/quote").filter(({ name }) => name === "rpcUrl");
    expect(rpcUrl).toMatchObject({ in: "query", style: "deepObject", explode: true, example: {} });
    expect(Object.keys(rpcUrl.schema.properties)).toEqual(schemas.Chain.enum);
    expect(rpcUrl.schema.properties.base).toEqual({ $ref: "#/components/schemas/RpcUrl" });
    expect(rpcUrl.schema.additionalProperties).toBe(false);
  });

  test("requires every response field and omits unspecified enum values", () => {
    const { schemas } = description.components;
    const status = schemas.GetTransferStatusResponse;
    expect(status.required).toEqual(Object.keys(status.properties));
    expect(status.required).toHaveLength(23);
    expect(status.properties.timestamp).toMatchObject({ $ref: "#/components/schemas/UnixTime" });
    expect(schemas.UnixTime).toMatchObject({ type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
    expect(schemas.GetTransferStatusResponseState.enum).toEqual(["PENDING", "BONDED", "UNBONDABLE"]);
    const addressOrEmpty = [{ $ref: "#/components/schemas/Address" }, { type: "string", const: "" }];
    expect(status.properties.bonderAddress.anyOf).toEqual(addressOrEmpty);
    expect(schemas.GetTransferStatusResponseState.description).toMatch(/^State of a transfer\.\n\n- `PENDING`/);
  });

  test("describes the field that response_body names as the whole response", () => {
    const { content } = description.paths["/v1/available-routes"].get.responses[200];
    expect(content["application/json"].schema).toEqual({
      type: "array",
      items: { $ref: "#/components/schemas/Route" },
    });
    expect(content["application/json"].example).toMatchObject([{ token: "rETH", sourceChainId: 10 }]);
    expect(description.components.schemas).not.toHaveProperty("ListAvailableRoutesResponse");
  });

  test("lists error reasons by status, and specific reasons only for their method", () => {
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

  test("lists the response headers of a method", () => {
    const { headers } = description.paths["/v1/transfer-status"].get.responses[200];
    expect(headers.Source.schema).toEqual({ type: "string", enum: ["chain", "index", "explorer"] });
    expect(headers["Observed-At"].schema).toEqual({ type: "string", format: "date-time" });
    expect(description.paths["/v1/quote"].get.responses[200].headers).not.toHaveProperty("Source");
  });

  test("states which parameters require at least one of them", () => {
    const { get } = description.paths["/v1/transfer-status"];
    expect(get["x-at-least-one-of"]).toEqual(["transferId", "transferHash", "transactionHash"]);
    expect(get.description).toContain("At least one of `transferId`, `transferHash`, `transactionHash` is required.");
  });
});

describe("another contract", () => {
  const header = `// A library.
syntax = "proto3";
package library.v1;
import "buf/validate/validate.proto";
import "google/api/annotations.proto";
import "google/api/field_behavior.proto";
import "hop/openapi/v1/options.proto";
option (hop.openapi.v1.schema) = {name: "Shelf", description: "A shelf.", example: "B"};
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
  repeated string shelves = 1 [
    (buf.validate.field).repeated.items.string.pattern = "^[A-Z]$",
    (hop.openapi.v1.property).schema = "Shelf"
  ];
  // Maximum age.
  optional int32 years = 2;
  // Binding.
  Binding binding = 3;
  // Notes by page.
  map<int32, string> notes = 4;
  // Its title.
  string title = 5 [(buf.validate.field).string = {min_len: 2, max_len: 80, example: "Emma"}];
  // Its price.
  double price = 6 [(buf.validate.field).double = {gt: 0, lte: 99.5}];
}
// How it is bound.
enum Binding {
  // Not stated.
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

  test("is described beside ours without further code", async () => {
    const { paths, components, tags, info } = await generated(proto);
    expect(Object.keys(paths)).toEqual(expect.arrayContaining(["/v1/quote", "/v1/book", "/v1/old/book"]));
    expect(tags).toContainEqual({ name: "LibraryService", description: "Knows books." });
    expect(info.description).toContain("A library.");
    const { get } = paths["/v1/book"];
    expect(get).toMatchObject({ operationId: "findBook", summary: "Finds a book" });
    expect(get.description).toBe("Finds a book. The `firstEdition` comes first.\n\nSlowly.");
    expect(paths["/v1/old/book"].get.operationId).not.toBe("findBook");
    expect(get.parameters.slice(0, 6)).toEqual([
      {
        ...{ name: "shelves", in: "query", description: "Where." },
        schema: { type: "array", items: { $ref: "#/components/schemas/Shelf" } },
        example: ["B"],
      },
      { name: "years", in: "query", description: "Maximum age.", schema: { type: "integer", format: "int32" } },
      { name: "binding", in: "query", description: "Binding.", schema: { $ref: "#/components/schemas/Binding" } },
      {
        ...{ name: "notes", in: "query", description: "Notes by page.", style: "deepObject", explode: true },
        schema: { type: "object", additionalProperties: { type: "string" } },
        example: {},
      },
      {
        ...{ name: "title", in: "query", description: "Its title." },
        schema: { type: "string", minLength: 2, maxLength: 80 },
        example: "Emma",
      },
      {
        ...{ name: "price", in: "query", description: "Its price." },
        schema: { type: "number", format: "double", exclusiveMinimum: 0, maximum: 99.5 },
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

  const property = "(hop.openapi.v1.property)";
  test.each([
    ["a field of an undeclared schema", `shelf = 1 [${property}.schema = "Room"]`, "refers to schema Room"],
    ["two schemas of one name", `shelf = 1 [${property}.schema = "Book"]`, "two schemas share the name Book"],
    [
      "a shared schema with different constraints",
      `a = 1 [${property}.schema = "Shelf"]; string b = 2 [${property}.schema = "Shelf", (buf.validate.field).string.max_len = 1]`,
      "two schemas share the name Shelf",
    ],
    [
      "a field that only one annotation requires",
      "shelf = 1 [(google.api.field_behavior) = REQUIRED]",
      'disagree about "required"',
    ],
  ])("is rejected with %s", async (_, field, message) => {
    const invalid = `${header}
option (hop.openapi.v1.schema) = {name: "Book"};
// Knows books.
service LibraryService {
  // Finds.
  rpc FindBook(FindBookRequest) returns (Book) { option (google.api.http) = {get: "/v1/book"}; }
}
message FindBookRequest { string ${field}; }
message Book {}
`;
    await expect(generated(invalid)).rejects.toThrow(message);
  });

  const rule = 'option (buf.validate.message).cel = {id: "one", expression: "has(this.x) || has(this.y)"};';
  test.each([
    ["an unknown reason", 'option (hop.openapi.v1.operation) = {reasons: "BORED"};', "", "unknown reason BORED"],
    ["a rule for an unknown field", "", rule, "no field x"],
  ])("is rejected with %s", async (_, methodOption, messageOption, message) => {
    const invalid = `${header}
// Knows books.
service LibraryService {
  // Finds.
  rpc FindBook(FindBookRequest) returns (Book) {
    option (google.api.http) = {get: "/v1/book"};
    ${methodOption}
  }
}
message FindBookRequest { ${messageOption} }
message Book {}
`;
    await expect(generated(invalid)).rejects.toThrow(message);
  });
});
