/**
 * A value that is available now or later. Cached reads return it synchronously, which spares the event-loop turn and the
 * allocations of a promise. Only this file tests which one it is.
 */
export type MaybePromise<T> = T | Promise<T>;

export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return value instanceof Promise;
}

/** Like `value.then(onValue)`, but calls onValue synchronously for a value that is available now. */
export function mapMaybeAsync<T, R>(value: MaybePromise<T>, onValue: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(onValue) : onValue(value);
}

/** Like `value.catch(onError)`; returns a value that is available now unchanged. */
export function catchMaybeAsync<T>(
  value: MaybePromise<T>,
  onError: (error: unknown) => MaybePromise<T>,
): MaybePromise<T> {
  return value instanceof Promise ? value.catch(onError) : value;
}
