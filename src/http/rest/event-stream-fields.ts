import { type DescField, type DescMethod, getOption, hasOption, ScalarType } from "@bufbuild/protobuf";
import { event_stream as eventStreamOption } from "../../../gen/hop/http/v1/event_stream_pb.js";

/** What the fields of a server-streaming method are in Server-Sent Events, and in the query that asks for them. */
export interface EventStreamFields {
  /** Response field that is the id of an event. */
  readonly id: DescField;
  /** The oneof of the response that is the event. */
  readonly oneofName: string;
  /** Its members: messages. */
  readonly members: readonly DescField[];
  /** Request field that Last-Event-ID sets. */
  readonly lastEventId: DescField;
  /** How many items all lists of a query may have together; 0: no limit. */
  readonly maxListItems: number;
}

/** Reads the annotation of a server-streaming method. Throws if it is missing or names fields that do not fit. */
export function readEventStreamFields(method: DescMethod): EventStreamFields {
  const { input, output, parent, name } = method;
  const createError = (problem: string) =>
    new Error(`hop.http.v1.event_stream of ${parent.typeName}/${name}: ${problem}`);
  if (!hasOption(method, eventStreamOption)) throw createError("a stream needs it to be served by GET");
  const option = getOption(method, eventStreamOption);
  const findText = ({ fields, typeName }: typeof input, fieldName: string): DescField => {
    const found = fields.find((field) => field.name === fieldName);
    const isText = found?.fieldKind === "scalar" && found.scalar === ScalarType.STRING && found.oneof === undefined;
    if (found === undefined || !isText) throw createError(`${typeName}.${fieldName} is not a string field`);
    return found;
  };
  const oneof = output.oneofs.find((candidate) => candidate.name === option.event);
  if (oneof === undefined) throw createError(`${output.typeName} has no oneof ${option.event}`);
  const scalar = oneof.fields.find(({ message }) => message === undefined);
  if (scalar !== undefined) throw createError(`${output.typeName}.${scalar.name} is not a message`);
  return {
    id: findText(output, option.id),
    oneofName: oneof.localName,
    members: oneof.fields,
    lastEventId: findText(input, option.lastEventId),
    maxListItems: option.maxListItems,
  };
}
