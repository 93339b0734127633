/** Memory that a caller holds. */
export interface Holding<T> {
  readonly caller: string;
  readonly item: T;
  readonly bytes: number;
}

/**
 * Yields what to give up when a budget is exceeded, until its reader stops: the largest item of the caller that holds
 * most then, so that a caller loses nothing while another holds more.
 */
export function* takeLargestFirst<T>(holdings: Iterable<Holding<T>>): Generator<Holding<T>, void> {
  const byCaller = new Map<string, { total: number; readonly held: Holding<T>[] }>();
  for (const holding of holdings) {
    const holder = byCaller.get(holding.caller) ?? { total: 0, held: [] };
    byCaller.set(holding.caller, holder);
    holder.total += holding.bytes;
    holder.held.push(holding);
  }
  for (const { held } of byCaller.values()) held.sort((a, b) => a.bytes - b.bytes);
  for (;;) {
    let largest: { total: number; readonly held: Holding<T>[] } | undefined;
    for (const holder of byCaller.values()) if (holder.total > (largest?.total ?? 0)) largest = holder;
    const holding = largest?.held.pop();
    if (largest === undefined || holding === undefined) return;
    largest.total -= holding.bytes;
    yield holding;
  }
}
