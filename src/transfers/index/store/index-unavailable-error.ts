/** The index cannot be used in this installation; the message is written for the operator. */
export class IndexUnavailableError extends Error {
  override readonly name: string = "IndexUnavailableError";
}
