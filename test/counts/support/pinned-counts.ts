import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "vitest";

interface Pins {
  /** Major version of Node.js with which the bytes were counted. */
  readonly node: string;
  readonly counts: Readonly<Record<string, number>>;
}

/** What one request may cost more than when the counts were pinned. */
const TOLERANCE = 0.1;
/** A pin this near the new count stays: the same code differs by up to half of this from run to run. */
const NOISE = 0.01;

const file = new URL("../pinned-counts.json", import.meta.url);
const isUpdate = process.env.UPDATE_COUNTS !== undefined;
const [nodeMajor = ""] = process.versions.node.split(".");

/**
 * The numbers of `pinned-counts.json`. `npm run counts:pin` writes them again, and the difference is reviewed like code.
 */
export class PinnedCounts {
  readonly #pins = JSON.parse(readFileSync(file, "utf8")) as Pins;
  readonly #counted = new Map<string, number>();
  /** Why this version of Node.js cannot be compared; undefined: it can. */
  readonly otherNode: string | undefined =
    isUpdate || nodeMajor === this.#pins.node
      ? undefined
      : ` (left out: pinned with Node.js ${this.#pins.node}, this is ${nodeMajor})`;

  /** Fails if a count is more than 10 % above its pin, or has none. While pins are written, it takes the count as the new pin. */
  check(name: string, count: number): void {
    expect(count, `${name} was not counted`).toBeGreaterThan(0);
    this.#counted.set(name, count);
    if (isUpdate) return;
    const pin = this.#pins.counts[name];
    if (pin === undefined) expect.fail(`${name} is ${format(count)} and has no pin: run npm run counts:pin`);
    expect(count, `${describe(name, count, pin)}. If that is intended: npm run counts:pin`).toBeLessThanOrEqual(
      pin * (1 + TOLERANCE),
    );
  }

  /** Prints the counts of this run. Writes them if pins are to be written. */
  finish(): void {
    const lines = [...this.#counted].map(([name, count]) => describe(name, count, this.#pins.counts[name]));
    process.stdout.write(`${lines.join("\n")}\n`);
    if (isUpdate) this.#save();
  }

  #save(): void {
    const counts = { ...this.#pins.counts };
    for (const [name, count] of this.#counted) {
      const pin = counts[name];
      if (pin === undefined || Math.abs(count / pin - 1) > NOISE) counts[name] = Number(count.toPrecision(4));
    }
    writeFileSync(file, `${JSON.stringify({ node: nodeMajor, counts } satisfies Pins, null, 2)}\n`);
  }
}

function describe(name: string, count: number, pin = Number.NaN): string {
  return `${name}: ${format(count)}, pinned ${format(pin)} (${format((count / pin - 1) * 100)} %)`;
}

function format(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: Math.abs(value) < 100 ? 2 : 0 });
}
