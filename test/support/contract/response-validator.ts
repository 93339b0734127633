import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import type { RecordedResponse } from "./response-recorder.js";

// Whether an answer is what gen/openapi.json says, to the letter: what it does not declare is wrong too.

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

/** What HTTP, browsers and our GET layer say of every answer, and the description need not. */
const UNDECLARED_HEADERS: ReadonlySet<string> = new Set([
  ...["content-type", "content-length", "connection", "x-content-type-options"],
  ...["access-control-allow-origin", "access-control-expose-headers"],
]);

const JSON_TYPE = "application/json";

export function readOpenApi(): OpenApi {
  return JSON.parse(readFileSync(new URL("../../../gen/openapi.json", import.meta.url), "utf8")) as OpenApi;
}

/** What is wrong with an answer; nothing: all is well. `undefined`: the description does not speak of it. */
export type ValidateResponse = (answer: RecordedResponse) => readonly string[] | undefined;

export function createResponseValidator(openApi: OpenApi): ValidateResponse {
  const document = forbidAdditionalProperties(openApi);
  // Formats of numbers say how wide they are, which their own bounds say too.
  const ajv = addFormats.default(new Ajv2020({ strict: true, strictTypes: false, allErrors: true }));
  // The document is no schema, but those in it refer to each other through it.
  ajv.addVocabulary(Object.keys(document)).addSchema(document, "openapi");
  const validators = new Map<string, ValidateFunction>();

  function problemsOf(pointer: string, value: unknown, of: string): string[] {
    const validate = validators.get(pointer) ?? ajv.compile({ $ref: `openapi#${pointer}` });
    validators.set(pointer, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message, params }) => {
      return `${of}${instancePath} ${message} ${JSON.stringify(params)}`;
    });
  }

  /** Follows a reference, if it is one. */
  function resolve<T>(pointer: string): { readonly pointer: string; readonly value: T | undefined } {
    let value: unknown = document;
    for (const part of pointer.split("/").slice(1)) {
      value = (value as Record<string, unknown> | undefined)?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
    }
    const target = (value as { readonly $ref?: string } | undefined)?.$ref;
    return target === undefined ? { pointer, value: value as T | undefined } : resolve(target.slice(1));
  }

  function wrongHeaders(pointer: string, { headers = {} }: Response, answer: RecordedResponse): string[] {
    const declared = new Map(Object.keys(headers).map((name) => [name.toLowerCase(), name]));
    const undeclared = Object.keys(answer.headers).filter(
      (name) => !UNDECLARED_HEADERS.has(name) && !declared.has(name),
    );
    return [
      ...undeclared.map((name) => `header ${name} is not declared`),
      ...[...declared].flatMap(([lower, name]) => {
        const header = resolve<{ readonly required?: boolean; readonly schema: { readonly type: string } }>(
          `${pointer}/headers/${name}`,
        );
        const text = answer.headers[lower];
        if (text === undefined) return header.value?.required ? [`header ${name} is missing`] : [];
        const value = header.value?.schema.type === "integer" && /^-?\d+$/.test(text) ? Number(text) : text;
        return problemsOf(`${header.pointer}/schema`, value, `header ${name}`);
      }),
    ];
  }

  function wrongBody(pointer: string, { content }: Response, { method, headers, body }: RecordedResponse): string[] {
    const type = headers["content-type"];
    if (content === undefined) return body === "" && type === undefined ? [] : ["there is a body"];
    if (type !== `${JSON_TYPE}; charset=utf-8`) return [`the content type is ${type}`];
    if (method === "HEAD") return body === "" ? [] : ["HEAD is answered with a body"];
    return wrongJson(`${pointer}/content/application~1json/schema`, body);
  }

  function wrongJson(pointer: string, body: string): string[] {
    let value: unknown;
    try {
      value = JSON.parse(body);
    } catch {
      return ["the body is no JSON"];
    }
    return problemsOf(pointer, value, "body");
  }

  const [anyPath] = Object.keys(document.paths);
  return (answer) => {
    const { method, path, status } = answer;
    if (method === "OPTIONS") return undefined;
    const isKnown = document.paths[path] !== undefined;
    if (!isKnown && status === 404) {
      return method === "HEAD" ? [] : wrongJson("/components/schemas/Error", answer.body);
    }
    // What is refused before its path is looked at is refused in the same way everywhere.
    const of = `/paths/${(isKnown ? path : (anyPath ?? "")).replaceAll("/", "~1")}/get/responses/${status}`;
    const { pointer, value: response } = resolve<Response>(of);
    if (response === undefined) return [`status ${status} is not declared`];
    if (!isKnown && status < 400) return ["there is nothing at this path"];
    const isOtherMethod = method !== "GET" && method !== "HEAD";
    if (isOtherMethod && isKnown && status < 400) return ["this method is not declared"];
    return [...wrongHeaders(pointer, response, answer), ...wrongBody(pointer, response, answer)];
  };
}

/** The description with objects that hold nothing but what is declared. */
function forbidAdditionalProperties(openApi: OpenApi): OpenApi {
  const schemas = Object.entries(openApi.components.schemas).map(([name, schema]) => {
    const isObject = schema.type === "object" && !("additionalProperties" in schema);
    return [name, isObject ? { ...schema, additionalProperties: false } : schema] as const;
  });
  return { ...openApi, components: { ...openApi.components, schemas: Object.fromEntries(schemas) } };
}
