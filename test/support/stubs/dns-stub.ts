import { createSocket } from "node:dgram";
import type { AddressInfo } from "node:net";
import ipaddr from "ipaddr.js";

/** A name server on a local port. */
export interface DnsStub {
  /** Address and port, as `Resolver.setServers` accepts them. */
  readonly server: string;
  /** Addresses by name and type (`rpc.example.org A`); "silent": no response. Any other name does not exist. */
  readonly records: Map<string, readonly string[] | "silent">;
  /** Name and type of each question so far. */
  readonly queries: readonly string[];
  close(): Promise<void>;
}

const HEADER_BYTES = 12;
const RECORD_TYPE_NAMES: Readonly<Record<number, string>> = { 1: "A", 28: "AAAA" };

export async function startDnsStub(): Promise<DnsStub> {
  const socket = createSocket("udp4");
  const records: DnsStub["records"] = new Map();
  const queries: string[] = [];

  socket.on("message", (query, from) => {
    const { name, end } = readName(query);
    const type = query.readUInt16BE(end);
    const question = `${name} ${RECORD_TYPE_NAMES[type] ?? type}`;
    queries.push(question);
    const addresses = records.get(question);
    if (addresses === "silent") return;
    const answers = (addresses ?? []).map((address) => {
      const data = Buffer.from(ipaddr.parse(address).toByteArray());
      // A pointer to the name in the question; type; class IN; one minute.
      const head = Buffer.from([0xc0, HEADER_BYTES, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length]);
      return Buffer.concat([head, data]);
    });
    const header = Buffer.alloc(HEADER_BYTES);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(addresses === undefined ? 0x8183 : 0x8180, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(answers.length, 6);
    socket.send(Buffer.concat([header, query.subarray(HEADER_BYTES, end + 4), ...answers]), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return {
    server: `127.0.0.1:${(socket.address() as AddressInfo).port}`,
    records,
    queries,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}

/** Returns the name in the question and the offset after it. */
function readName(query: Buffer): { readonly name: string; readonly end: number } {
  const labels: string[] = [];
  let offset = HEADER_BYTES;
  for (let length = query.readUInt8(offset); length > 0; length = query.readUInt8(offset)) {
    labels.push(query.toString("latin1", offset + 1, offset + 1 + length));
    offset += 1 + length;
  }
  return { name: labels.join("."), end: offset + 1 };
}
