import { readFileSync } from "node:fs";
import { create, createFileRegistry } from "@bufbuild/protobuf";
import {
  type CodeGeneratorRequest,
  type CodeGeneratorResponse,
  CodeGeneratorResponseSchema,
  Edition,
  CodeGeneratorResponse_Feature as Feature,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";
import { runNodeJs } from "@bufbuild/protoplugin";
import { findPackageRoot } from "../src/app/package-files.js";
import { generateOpenApi, type PackageInfo } from "./document.js";

// A plugin for buf and protoc: generates the OpenAPI description of every method that `google.api.http` maps to GET.

const OUTPUT_FILE = "openapi.json";
const PLUGIN_FEATURES = BigInt(Feature.PROTO3_OPTIONAL | Feature.SUPPORTS_EDITIONS);

function runPlugin({ protoFile, fileToGenerate }: CodeGeneratorRequest): CodeGeneratorResponse {
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: protoFile }));
  const files = [...registry.files].filter(({ proto }) => fileToGenerate.includes(proto.name));
  const packageInfo = JSON.parse(readFileSync(new URL("package.json", findPackageRoot().url), "utf8")) as PackageInfo;
  const content = `${JSON.stringify(generateOpenApi(files, packageInfo), undefined, 2)}\n`;
  return create(CodeGeneratorResponseSchema, {
    supportedFeatures: PLUGIN_FEATURES,
    minimumEdition: Edition.EDITION_PROTO2,
    maximumEdition: Edition.EDITION_2023,
    file: [{ name: OUTPUT_FILE, content }],
  });
}

runNodeJs({ name: "protoc-gen-openapi", version: "v1", run: runPlugin });
