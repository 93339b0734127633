import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

// Keys like those that RPC providers put into URLs, planted into every endpoint of the tests. No output may contain them.

/** The key in the endpoints of the operator. */
export const OPERATOR_KEY = "OursQ7tv2LxW9planted";
/** The key in the endpoints of callers. */
export const CALLER_KEY = "CallersJ4mZ8bNkplanted";

/** Adds the operator's key to every RPC URL: as user info, and as a query if the URL has no path. */
export function plantKeys(environment: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(environment).map(([name, value]) => {
    if (!/^(?:GOERLI_)?RPC_URL_/.test(name)) return [name, value] as const;
    return [name, value.split(",").map(withKey).join(",")] as const;
  });
  return Object.fromEntries(entries);
}

function withKey(text: string): string {
  const url = new URL(text);
  url.username = OPERATOR_KEY;
  url.password = OPERATOR_KEY;
  if (url.pathname === "/") url.search = `?key=${OPERATOR_KEY}`;
  return url.href;
}

interface KeyEncoding {
  readonly name: string;
  occursIn(text: string): boolean;
}

function createEncodings(key: string): readonly KeyEncoding[] {
  const bytes = Buffer.from(key);
  const lower = key.toLowerCase();
  const hex = bytes.toString("hex");
  const list = [...bytes].join(",");
  // In longer text a key has one of three offsets in a base64 group; characters shared with neighbouring bytes are cut off.
  const base64 = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes])
      .toString("base64")
      .slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6)),
  );
  return [
    { name: "in plain text", occursIn: (text) => text.toLowerCase().includes(lower) },
    // Also finds it with every byte percent-encoded.
    { name: "as hex", occursIn: (text) => text.replaceAll("%", "").toLowerCase().includes(hex) },
    { name: "as base64", occursIn: (text) => base64.some((encoded) => text.includes(encoded)) },
    { name: "as a list of bytes", occursIn: (text) => text.replaceAll(" ", "").includes(list) },
  ];
}

const keyEncodings = [
  ...createEncodings(OPERATOR_KEY).map((form) => ({ ...form, name: `the operator's key ${form.name}` })),
  ...createEncodings(CALLER_KEY).map((form) => ({ ...form, name: `a caller's key ${form.name}` })),
];

/** Returns which planted keys a text contains, and in which encoding. */
export function findPlantedKeys(text: string): string[] {
  return keyEncodings.filter(({ occursIn }) => occursIn(text)).map(({ name }) => name);
}

/** Returns every line of the files in a folder that contains a planted key, with a description of the key. */
export async function findPlantedKeysInFolder(folder: string): Promise<string[]> {
  const findings: string[] = [];
  for (const file of await readdir(folder)) {
    const text = await readFile(join(folder, file), "utf8");
    if (findPlantedKeys(text).length === 0) continue;
    const lines = text.split("\n").flatMap((line) => {
      const keys = findPlantedKeys(line);
      return keys.length === 0 ? [] : [`${keys.join(", ")}: ${line}`];
    });
    findings.push(
      ...(lines.length > 0 ? lines : [`${findPlantedKeys(text).join(", ")}, over several lines of ${file}`]),
    );
  }
  return findings;
}
