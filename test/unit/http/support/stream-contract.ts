import { create, createFileRegistry, type DescService, setExtension } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, MethodOptionsSchema } from "@bufbuild/protobuf/wkt";
import { http } from "../../../../gen/google/api/annotations_pb.js";
import { HttpRuleSchema } from "../../../../gen/google/api/http_pb.js";
import {
  file_hop_bridge_v1_bridge,
  type WatchTransfersRequest,
  type WatchTransfersResponse,
  WatchTransfersResponseSchema,
} from "../../../../gen/hop/bridge/v1/bridge_pb.js";
import { type EventStream, EventStreamSchema, event_stream } from "../../../../gen/hop/http/v1/event_stream_pb.js";
import type { AnyStreamOperation, MountedService } from "../../../../src/http/request/mounted-service.js";
import type { MessageStream, StreamOperation } from "../../../../src/operations/operation.js";

/** A server-streaming method with the messages of a watch, to test streams without what an operation does. */
export const WATCH_PATH = "/test.watch.v1.WatchService/Watch";
export const WATCH_GET_PATH = "/v1/things:watch";

export type WatchOperation = StreamOperation<WatchTransfersRequest, WatchTransfersResponse>;
export type WatchStream = MessageStream<WatchTransfersResponse>;

const EVENT_STREAM = { id: "resume_token", event: "event", lastEventId: "resume_token", maxListItems: 50 };

/** @param eventStream annotation of the method; undefined: none */
export function createWatchService(eventStream: Partial<Omit<EventStream, "$typeName">> | undefined): DescService {
  const options = create(MethodOptionsSchema);
  setExtension(options, http, create(HttpRuleSchema, { pattern: { case: "get", value: WATCH_GET_PATH } }));
  if (eventStream !== undefined) setExtension(options, event_stream, create(EventStreamSchema, eventStream));
  const file = create(FileDescriptorProtoSchema, {
    name: "test/watch/v1/watch.proto",
    package: "test.watch.v1",
    syntax: "proto3",
    dependency: [file_hop_bridge_v1_bridge.proto.name],
    service: [
      {
        name: "WatchService",
        method: [
          {
            name: "Watch",
            inputType: ".hop.bridge.v1.WatchTransfersRequest",
            outputType: ".hop.bridge.v1.WatchTransfersResponse",
            serverStreaming: true,
            options,
          },
        ],
      },
    ],
  });
  const registry = createFileRegistry(file, (name) =>
    name === file_hop_bridge_v1_bridge.proto.name ? file_hop_bridge_v1_bridge : undefined,
  );
  const service = registry.getService("test.watch.v1.WatchService");
  if (service === undefined) throw new Error("the test's contract has no service");
  return service;
}

export function mountWatch(watch: WatchOperation): MountedService {
  return {
    service: createWatchService(EVENT_STREAM),
    operations: { watch: watch as AnyStreamOperation },
  };
}

/** Creates the message of a transfer. */
export function transferEvent(resumeToken: string, transferId: string): WatchTransfersResponse {
  return create(WatchTransfersResponseSchema, { resumeToken, event: { case: "transfer", value: { transferId } } });
}

export function bookmarkEvent(resumeToken: string): WatchTransfersResponse {
  return create(WatchTransfersResponseSchema, { resumeToken, event: { case: "bookmark", value: {} } });
}

interface WatchCall {
  readonly stream: WatchStream;
  readonly request: WatchTransfersRequest;
  /** What happened to the stream. */
  readonly events: string[];
}

/** Creates an operation that does nothing by itself but send a bookmark when the server stops. */
export function createControlledWatch() {
  const opened: WatchCall[] = [];
  const waiting: ((call: WatchCall) => void)[] = [];
  let taken = 0;
  const operation: WatchOperation = (request, stream) => {
    const call: WatchCall = { stream, request, events: [] };
    const { events } = call;
    opened.push(call);
    const resolve = waiting.shift();
    if (resolve !== undefined) {
      taken += 1;
      resolve(call);
    }
    return {
      onReady: () => void events.push("ready"),
      onDrain() {
        events.push("drain");
        stream.send(bookmarkEvent("last"));
        stream.interrupt();
      },
      onEnd: () => void events.push("end"),
    };
  };
  return {
    operation,
    /** In the order of the calls. */
    opened: opened as readonly WatchCall[],
    /** Waits until a call has arrived, and returns its stream. */
    next(): Promise<WatchCall> {
      const call = opened[taken];
      if (call === undefined) return new Promise((resolve) => waiting.push(resolve));
      taken += 1;
      return Promise.resolve(call);
    },
  };
}
