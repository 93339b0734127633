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
        ...{ name: "shelves", in: "query", description: "Where.", style: "form", explode: true },
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
