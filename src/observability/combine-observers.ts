/** Notifies two observers of the start of an event and of its outcome. */
export function combineObservers<Event, Outcome>(
  first: (event: Event) => (outcome: Outcome) => void,
  second: (event: Event) => (outcome: Outcome) => void,
): (event: Event) => (outcome: Outcome) => void {
  return (event) => {
    const onEndCallbacks = [first(event), second(event)];
    return (outcome) => {
      for (const onEnd of onEndCallbacks) onEnd(outcome);
    };
  };
}
