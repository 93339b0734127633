import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { createFileRegistry, type DescMessage, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const PROJECT = fileURLToPath(new URL("../../..", import.meta.url));

/** Builds proto/ with all annotations, which the generated code in gen/ leaves out. */
export function buildAnnotatedContract(): FileRegistry {
  const buf = `${PROJECT}node_modules/.bin/buf`;
  const bytes = execFileSync(buf, ["build", "-o", "-#format=bin"], { cwd: PROJECT });
  return createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
}

/** @throws Error when the contract has no such message. */
export function getMessageType(contract: FileRegistry, typeName: string): DescMessage {
  const type = contract.getMessage(typeName);
  if (type === undefined) throw new Error(`the contract has no message ${typeName}`);
  return type;
}
