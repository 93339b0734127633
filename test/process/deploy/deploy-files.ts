import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

// Reads the files of deploy/ for their tests.

const project = new URL("../../../", import.meta.url);

/** Returns the absolute path of a file of the project. */
export function toProjectPath(name: string): string {
  return fileURLToPath(new URL(name, project));
}

/** Reads a file of the project as text. */
export function readProjectFile(name: string): string {
  return readFileSync(new URL(name, project), "utf8");
}

export function listProjectFiles(folder: string): readonly string[] {
  return readdirSync(new URL(folder, project)).map((name) => `${folder}${name}`);
}

/** Parses the documents of a YAML file; throws for invalid YAML. */
// biome-ignore lint/suspicious/noExplicitAny: the tests check the parts they use
export function readYaml(name: string): any[] {
  return parseAllDocuments(readProjectFile(name)).map((document) => {
    if (document.errors.length + document.warnings.length > 0) throw document.errors[0] ?? document.warnings[0];
    return document.toJS();
  });
}

/** Reads the variables of an environment file. Lines that are commented out count too if `isExample` is set. */
export function readEnvironmentFile(name: string, isExample = false): Readonly<Record<string, string>> {
  const lines = readProjectFile(name).matchAll(
    isExample ? /^#?([A-Z][A-Z0-9_]*)=(.*)$/gm : /^([A-Z][A-Z0-9_]*)=(.*)$/gm,
  );
  return Object.fromEntries([...lines].map(([, variable = "", value = ""]) => [variable, value]));
}

/**
 * Returns the environment of a service as Compose does: later files win over earlier ones, and `environment` over all.
 * @param files contents of the files that only operators have, by name
 */
export function renderEnvironment(
  service: {
    readonly env_file: readonly { readonly path: string; readonly required?: boolean }[];
    readonly environment?: Readonly<Record<string, string>>;
  },
  files: Readonly<Record<string, Readonly<Record<string, string>>>> = {},
): Readonly<Record<string, string>> {
  const given = service.env_file.map(({ path, required = true }) =>
    required ? readEnvironmentFile(`deploy/${path}`) : files[path],
  );
  return Object.assign({}, ...given, service.environment);
}

/** The variables that a file sets are those of this list: `RPC_URL_<CHAIN>` as `RPC_URL_<SLUG>`. */
export function toTableVariable(name: string): string {
  return name.replace(/^((?:GOERLI_)?RPC_URL_).*/, "$1<SLUG>");
}
