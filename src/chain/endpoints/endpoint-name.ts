import { createHmac, randomBytes } from "node:crypto";

/**
 * Returns the name of an RPC endpoint for logs, metrics, `/readyz` and `check`, such as `optimism[1]#3fa92c`.
 * @param slug slug of the chain
 * @param place position in the configured list, from 1
 */
export type EndpointNamer = (slug: string, place: number, url: string) => string;

/** Name of every endpoint that a caller names. */
export const CUSTOM_ENDPOINT_NAME = "custom";

const KEY_BYTES = 32;
const DIGITS = 6;

/** Generates a key for createEndpointNamer. */
export function generateEndpointNameKey(): string {
  return randomBytes(KEY_BYTES).toString("hex");
}

/**
 * Creates a namer for all endpoints of a service. Nothing of the URL is in the name, since even the host may hold a key
 * (`<key>.host`).
 *
 * The digits tell URLs apart. They are HMAC-SHA-256 with a key that is random per start: digits of a plain hash, or of
 * one whose key follows from the configuration, would let a reader of the metrics verify guesses of a weak key or
 * password offline. What stays the same over restarts and replicas is the chain and the place in the list.
 */
export function createEndpointNamer(key: string = generateEndpointNameKey()): EndpointNamer {
  return (slug, place, url) =>
    `${slug}[${place}]#${createHmac("sha256", key).update(url).digest("hex").slice(0, DIGITS)}`;
}
