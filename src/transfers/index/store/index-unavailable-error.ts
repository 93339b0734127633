/** The index cannot be used in this installation, or not now; the message is written for the operator. */
export class IndexUnavailableError extends Error {
  override readonly name: string = "IndexUnavailableError";
  /** Whether trying again may help. */
  readonly isTemporary: boolean = false;
}
