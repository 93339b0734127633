import type { DescField, DescMethod } from "@bufbuild/protobuf";
import { type EventStreamFields, readEventStreamFields } from "../../src/http/rest/annotations.js";
import { getOperationOptions } from "../contract-options.js";
import { getComment } from "../doc-comments.js";
import { buildMessageExample } from "../examples.js";
import { componentRef, type JsonObject, omitEmpty } from "../json-object.js";
import type { SchemaRegistry } from "../schemas.js";
import { streamHeadersForStatus } from "./response-headers.js";

const DESCRIPTION =
  `The server first sends \`retry\`, when to come back after the connection was lost; clients repeat the last \`id\`
in the header \`Last-Event-ID\`. \`end\` completes the stream, \`failure\` ends it with an error. A stream that ends without either is to be
resumed.`.replaceAll("\n", " ");

/**
 * Returns the successful responses of a server-streaming method: Server-Sent Events. OpenAPI 3.1 has no keyword for the
 * items of a stream: `contentSchema` describes them as a list, of items in the form of `itemSchema` of OpenAPI 3.2.
 */
export function toEventStreamResponses(method: DescMethod, schemas: SchemaRegistry): JsonObject {
  const fields = readEventStreamFields(method);
  const { headers } = getOperationOptions(method);
  return {
    200: {
      description: `${getComment(method.output)}\n\n${DESCRIPTION}`,
      headers: streamHeadersForStatus(headers),
      content: {
        "text/event-stream": {
          schema: {
            ...{ type: "string", description: "Events in the format of Server-Sent Events." },
            ...{
              contentMediaType: "text/event-stream",
              contentSchema: { type: "array", items: toItemSchema(fields, schemas) },
            },
          },
          example: fields.members.map((member) => formatExample(fields, member)).join(""),
        },
      },
    },
    204: {
      description: "Nothing is left to send: clients do not come back.",
      headers: streamHeadersForStatus([]),
    },
  };
}

function toItemSchema({ id, members }: EventStreamFields, schemas: SchemaRegistry): JsonObject {
  const toEvent = (name: string, description: string, contentSchema: JsonObject): JsonObject =>
    omitEmpty({
      type: "object",
      description,
      properties: {
        event: { type: "string", const: name },
        id: { type: "string", description: getComment(id) },
        data: { type: "string", contentMediaType: "application/json", contentSchema },
      },
      required: ["event", "data"],
    });
  return {
    oneOf: [
      ...members.map((member) => toEvent(member.jsonName, getComment(member), schemas.forField(member))),
      toEvent("end", "The stream is complete.", { type: "object", maxProperties: 0 }),
      toEvent("failure", "The stream has failed.", componentRef("schemas", "Error")),
    ],
  };
}

function formatExample({ id }: EventStreamFields, { jsonName, message }: DescField): string {
  const data = message === undefined ? {} : buildMessageExample(message);
  return `event: ${jsonName}\nid: <${id.jsonName}>\ndata: ${JSON.stringify(data)}\n\n`;
}
