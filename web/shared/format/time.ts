/** Formats a duration with one unit: `4 s`, `12 min`, `5 h`, `3 d`. A negative duration counts as 0. */
export function formatDuration(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 100) return `${whole} s`;
  if (whole < 100 * 60) return `${Math.floor(whole / 60)} min`;
  if (whole < 48 * 3600) return `${Math.floor(whole / 3600)} h`;
  return `${Math.floor(whole / 86_400)} d`;
}

/** Formats a time in the user's locale and time zone. */
export function formatTime(unixSeconds: number): string {
  return new Date(unixSeconds * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** Resolves after a delay, or immediately when the signal aborts. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    if (signal.aborted) finish();
    else signal.addEventListener("abort", finish);
  });
}
