import { parseUrl } from "../chain/parse-url.js";

/** A parser returns undefined for an invalid text. The wrapper allows undefined as a value. */
export type Parser<T> = (text: string) => { readonly value: T } | undefined;

export const MAX_PORT = 65_535;

export function parseHttpUrls(text: string): { readonly value: readonly string[] } | undefined {
  const urls = text.split(",").map((url) => url.trim());
  return urls.every(isHttpUrl) ? { value: urls } : undefined;
}

export function isHttpUrl(text: string): boolean {
  return /^https?:$/.test(parseUrl(text)?.protocol ?? "");
}

export function parsePorts(text: string): { readonly value: readonly number[] } | undefined {
  const ports = text.split(",").map((port) => parsePort(port.trim(), 1));
  return ports.every((port) => port !== undefined) ? { value: ports } : undefined;
}

/** Parses a port from `min` to 65535. */
export function parsePort(text: string, min: number): number | undefined {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : -1;
  return port >= min && port <= MAX_PORT ? port : undefined;
}

export function parseTokenPrices(text: string): { readonly value: ReadonlyMap<string, number> } | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return undefined;
    const entries = Object.entries(parsed);
    const isPrice = (value: unknown): value is number => typeof value === "number" && value > 0 && value < Infinity;
    return entries.every(([, price]) => isPrice(price)) ? { value: new Map(entries as [string, number][]) } : undefined;
  } catch {
    return undefined;
  }
}
