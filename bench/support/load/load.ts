/** Result of a load run. */
export interface LoadResult {
  readonly completed: number;
  readonly seconds: number;
  /** CPU utilization of the generator, 0 to 1; near 1 the generator is the bottleneck. */
  readonly generatorUtilization: number;
}

/** One kind of load, produced by one generator. */
export interface Load {
  /** Name of the generator. */
  readonly generator: string;
  /**
   * Loads a server. Rejects on any unexpected response.
   * @param seconds a whole number
   */
  run(url: string, seconds: number): Promise<LoadResult>;
}
