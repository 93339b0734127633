/** A swap for which the pool's contract would revert: its arithmetic cannot handle the amount or the pool's state. */
export class SwapRevertError extends Error {
  override readonly name = "SwapRevertError";
}
