import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { RecordedResponse } from "./response-recorder.js";

// Validates responses strictly against gen/openapi.json: anything it does not declare is a problem too.

interface Response {
  readonly headers?: Readonly<Record<string, { readonly $ref?: string }>>;
  readonly content?: Readonly<Record<string, unknown>>;
}

export interface OpenApi {
  readonly paths: Readonly<
    Record<string, { readonly get: { readonly responses: Readonly<Record<string, Response>> } }>
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Readonly<Record<string, unknown>>>> };
}

/** Headers that HTTP, browsers or the GET layer set on every response; the description omits them. */
const UNDECLARED_HEADERS: ReadonlySet<string> = new Set([
  ...["content-type", "content-length", "connection", "x-content-type-options"],
  ...["access-control-allow-origin", "access-control-expose-headers"],
  "x-accel-buffering",
]);

/** Headers that belong to one caller. */
const CALLER_HEADERS = /^(?:x-request-id|ratelimit-.*)$/;

const JSON_TYPE = "application/json";
const EVENT_STREAM_TYPE = "text/event-stream";

export function readOpenApi(): OpenApi {
  return JSON.parse(readFileSync(new URL("../../../gen/openapi.json", import.meta.url), "utf8")) as OpenApi;
}

/** Returns the problems of a response; undefined if the description does not cover it. */
export type ValidateResponse = (response: RecordedResponse) => readonly string[] | undefined;

export function createResponseValidator(openApi: OpenApi): ValidateResponse {
  const document = forbidAdditionalProperties(openApi);
  // Number formats state a width, which minimum and maximum state as well.
  const ajv = addFormats.default(new Ajv2020({ strict: true, strictTypes: false, allErrors: true }));
  // The document is not a schema, but the schemas in it refer to each other through it.
  ajv.addVocabulary(Object.keys(document)).addSchema(document, "openapi");
  const validators = new Map<string, ValidateFunction>();

  function findSchemaProblems(pointer: string, value: unknown, subject: string): string[] {
    const validate = validators.get(pointer) ?? ajv.compile({ $ref: `openapi#${pointer}` });
    validators.set(pointer, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message, params }) => {
      return `${subject}${instancePath} ${message} ${JSON.stringify(params)}`;
    });
  }

  /** Resolves a pointer, following a reference. */
  function resolve<T>(pointer: string): { readonly pointer: string; readonly value: T | undefined } {
    let value: unknown = document;
    for (const part of pointer.split("/").slice(1)) {
      value = (value as Record<string, unknown> | undefined)?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
    }
    const target = (value as { readonly $ref?: string } | undefined)?.$ref;
    return target === undefined ? { pointer, value: value as T | undefined } : resolve(target.slice(1));
  }

  function findHeaderProblems(pointer: string, { headers = {} }: Response, response: RecordedResponse): string[] {
    const declared = new Map(Object.keys(headers).map((name) => [name.toLowerCase(), name]));
    const undeclared = Object.keys(response.headers).filter(
      (name) => !UNDECLARED_HEADERS.has(name) && !declared.has(name),
    );
    const isShared = response.headers["cache-control"]?.startsWith("public") === true;
    const own = isShared ? Object.keys(response.headers).filter((name) => CALLER_HEADERS.test(name)) : [];
    return [
      ...own.map((name) => `header ${name} is for one caller, but shared caches may keep the response`),
      ...undeclared.map((name) => `header ${name} is not declared`),
      ...[...declared].flatMap(([lower, name]) => {
        const header = resolve<{ readonly required?: boolean; readonly schema: { readonly type: string } }>(
          `${pointer}/headers/${name}`,
        );
        const text = response.headers[lower];
        if (text === undefined) return header.value?.required ? [`header ${name} is missing`] : [];
        const value = header.value?.schema.type === "integer" && /^-?\d+$/.test(text) ? Number(text) : text;
        return findSchemaProblems(`${header.pointer}/schema`, value, `header ${name}`);
      }),
    ];
  }

  function findBodyProblems(
    pointer: string,
    { content }: Response,
    { method, headers, body }: RecordedResponse,
  ): string[] {
    const type = headers["content-type"];
    if (content === undefined) return body === "" && type === undefined ? [] : ["there must be no body"];
    // Clients of other makers read the events in test/e2e.
    if (content[EVENT_STREAM_TYPE] !== undefined)
      return type === EVENT_STREAM_TYPE ? [] : [`the content type is ${type}`];
    if (type !== `${JSON_TYPE}; charset=utf-8`) return [`the content type is ${type}`];
    if (method === "HEAD") return body === "" ? [] : ["HEAD returned a body"];
    return findJsonProblems(`${pointer}/content/application~1json/schema`, body);
  }

  function findJsonProblems(pointer: string, body: string): string[] {
    let value: unknown;
    try {
      value = JSON.parse(body);
    } catch {
      return ["the body is not JSON"];
    }
    return findSchemaProblems(pointer, value, "body");
  }

  const [anyPath] = Object.keys(document.paths);
  return (recorded) => {
    const { method, path, status } = recorded;
    if (method === "OPTIONS") return undefined;
    const isKnown = document.paths[path] !== undefined;
    if (!isKnown && status === 404) {
      return method === "HEAD" ? [] : findJsonProblems("/components/schemas/Error", recorded.body);
    }
    // Requests rejected before routing get the same response at every path.
    const responsePointer = `/paths/${(isKnown ? path : (anyPath ?? "")).replaceAll("/", "~1")}/get/responses/${status}`;
    const { pointer, value: response } = resolve<Response>(responsePointer);
    if (response === undefined) return [`status ${status} is not declared`];
    if (!isKnown && status < 400) return ["the path is not declared"];
    const isOtherMethod = method !== "GET" && method !== "HEAD";
    if (isOtherMethod && isKnown && status < 400) return ["this method is not declared"];
    return [...findHeaderProblems(pointer, response, recorded), ...findBodyProblems(pointer, response, recorded)];
  };
}

/** Returns the description with objects that allow no undeclared properties. */
function forbidAdditionalProperties(openApi: OpenApi): OpenApi {
  const schemas = Object.entries(openApi.components.schemas).map(([name, schema]) => {
    const isObject = schema.type === "object" && !("additionalProperties" in schema);
    return [name, isObject ? { ...schema, additionalProperties: false } : schema] as const;
  });
  return { ...openApi, components: { ...openApi.components, schemas: Object.fromEntries(schemas) } };
}
