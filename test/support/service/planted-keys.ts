import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

// Keys as RPC providers put them into URLs, planted wherever tests name an endpoint. No output may hold them in any form.

/** In the endpoints of the operator. */
export const OPERATOR_KEY = "OursQ7tv2LxW9planted";
/** In the endpoints that callers name. */
export const CALLER_KEY = "CallersJ4mZ8bNkplanted";

/** The environment with our key in every RPC URL: as user info, and in the query where the URL has no path of its own. */
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

function encodingsOf(key: string): readonly KeyEncoding[] {
  const bytes = Buffer.from(key);
  const lower = key.toLowerCase();
  const hex = bytes.toString("hex");
  const list = [...bytes].join(",");
  // Within longer text a key stands at one of three places in base64's groups; what it shares with its neighbours is cut.
  const base64 = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes])
      .toString("base64")
      .slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6)),
  );
  return [
    { name: "as it is", occursIn: (text) => text.toLowerCase().includes(lower) },
    // With every byte percent-encoded it is this too.
    { name: "as hex", occursIn: (text) => text.replaceAll("%", "").toLowerCase().includes(hex) },
    { name: "as base64", occursIn: (text) => base64.some((each) => text.includes(each)) },
    { name: "as a list of bytes", occursIn: (text) => text.replaceAll(" ", "").includes(list) },
  ];
}

const keyEncodings = [
  ...encodingsOf(OPERATOR_KEY).map((form) => ({ ...form, name: `our key ${form.name}` })),
  ...encodingsOf(CALLER_KEY).map((form) => ({ ...form, name: `a caller's key ${form.name}` })),
];

/** Which planted keys stand in a text, and in which form. */
export function findPlantedKeys(text: string): string[] {
  return keyEncodings.filter(({ occursIn }) => occursIn(text)).map(({ name }) => name);
}

/** Every line of every file of a folder that holds a planted key, with what is in it. */
export async function findPlantedKeysInFolder(folder: string): Promise<string[]> {
  const found: string[] = [];
  for (const file of await readdir(folder)) {
    const text = await readFile(join(folder, file), "utf8");
    if (findPlantedKeys(text).length === 0) continue;
    const lines = text.split("\n").flatMap((line) => {
      const keys = findPlantedKeys(line);
      return keys.length === 0 ? [] : [`${keys.join(", ")}: ${line}`];
    });
    found.push(...(lines.length > 0 ? lines : [`${findPlantedKeys(text).join(", ")}, over several lines of ${file}`]));
  }
  return found;
}
