// Inverts a quote. What an amount brings grows with it, apart from steps back by a unit that the floors in the fees cause,
// until the pools give no more; beyond that it may fall, since the bonder's fee grows on. Very small amounts may revert. With a
// fee of most of the amount, which Hop does not take, it could fall and rise again: then an amount may not be found.

/**
 * Returns what an amount brings after fees, which may be negative. "reverts": a pool cannot swap it. undefined: it is not
 * known, and neither is that of larger amounts.
 */
export type NetAmount = (amountIn: bigint) => bigint | "reverts" | undefined;

/** A tried amount. `net` is undefined where it is 0 or cannot be swapped. */
interface Trial {
  readonly amount: bigint;
  readonly net: bigint | undefined;
}

interface ValidTrial extends Trial {
  readonly net: bigint;
}

/** A trial that brings too little, and a larger one that brings enough. */
interface Bracket {
  readonly below: Trial;
  readonly above: ValidTrial;
}

const NOTHING: Trial = { amount: 0n, net: undefined };

const MAX_AMOUNT = (1n << 256n) - 1n;
/** Growth of the amount where more of it brings no more. */
const BLIND_GROWTH = 16n;
/** Smaller amounts that are tried if no larger one brings enough: in each step a quarter. */
const MAX_SMALLER_TRIALS = 10;
/** Larger amounts are not tried beyond 2^24 times the one that brings most, if that is 2^40 times the target. */
const MAX_BITS_BEYOND_BEST = 24n;
const MAX_BITS_BEYOND_TARGET = 40n;
/** Growth of the steps while the amount brings more. */
const STEP_GROWTH = 8n;
/**
 * Where this many times the amount is missing, a first step by a small part of it measures the slope: an almost empty pool
 * pays so much for the first units that a step by all of it could pass the maximum.
 */
const FAR_FACTOR = 8n;
const FIRST_STEP_DIVISOR = 1024n;
/** Finds the maximum of the output to about 2^-20 of the amount. */
const MAX_PEAK_TRIALS = 32;
/** Interpolations that may fail to halve the bracket before it is bisected. */
const MAX_SLOW_STEPS = 2;

/**
 * Returns an amount that brings at least `target`, and of which one unit less brings less or cannot be swapped; undefined if
 * none is found up to where the pools give no more, or are not known any further. Takes some 15 quotes where there is one.
 * @param target 1 or more
 */
export function findAmountIn(getNet: NetAmount, target: bigint): bigint | undefined {
  const bracket = findBracket(getNet, target);
  return bracket && narrow(bracket, getNet, target);
}

/** Tries growing amounts, then smaller ones, then amounts around that which brings most, until one brings enough. */
function findBracket(getNet: NetAmount, target: bigint): Bracket | undefined {
  const trials: Trial[] = [];
  let best: ValidTrial | undefined;
  let amount = target;
  let lastStep = 0n;
  for (;;) {
    const net = getNet(amount);
    if (isEnough(net, target)) return { below: trials.at(-1) ?? NOTHING, above: { amount, net } };
    const trial = toTrial(amount, net);
    trials.push(trial);
    const isRising = isValid(trial) && (best === undefined || trial.net > best.net);
    const isFar = amount >> MAX_BITS_BEYOND_TARGET >= target && amount >> MAX_BITS_BEYOND_BEST >= (best?.amount ?? 0n);
    if (net === undefined || amount === MAX_AMOUNT || (isFar && !isRising && best !== undefined)) break;
    const next = isRising ? amount + estimateStep(best, trial, target, lastStep) : amount * BLIND_GROWTH;
    if (isRising) best = trial;
    lastStep = next - amount;
    amount = next < MAX_AMOUNT ? next : MAX_AMOUNT;
  }
  amount = target / 4n;
  for (let trial = 0; trial < MAX_SMALLER_TRIALS && amount > 0n; trial++) {
    const net = getNet(amount);
    if (isEnough(net, target)) return { below: NOTHING, above: { amount, net } };
    trials.unshift(toTrial(amount, net));
    amount /= 4n;
  }
  return findBracketAtPeak(getNet, target, trials);
}

function toTrial(amount: bigint, net: ReturnType<NetAmount>): Trial {
  return { amount, net: typeof net === "bigint" ? net : undefined };
}

function isValid(trial: Trial): trial is ValidTrial {
  return trial.net !== undefined;
}

function isEnough(net: ReturnType<NetAmount>, target: bigint): net is bigint {
  return typeof net === "bigint" && net >= target;
}

/** Returns how much more to try: a little more than the slope of the last two trials says, and more than last. */
function estimateStep(previous: ValidTrial | undefined, current: ValidTrial, target: bigint, lastStep: bigint): bigint {
  const missing = target - current.net;
  if (previous === undefined) {
    if (missing < FAR_FACTOR * current.amount) return padStep(missing);
    const part = missing / FIRST_STEP_DIVISOR;
    return padStep(part > current.amount ? part : current.amount);
  }
  const step = padStep((missing * (current.amount - previous.amount)) / (current.net - previous.net));
  return step > STEP_GROWTH * lastStep ? step : STEP_GROWTH * lastStep;
}

function padStep(step: bigint): bigint {
  return step + step / 64n + 1n;
}

/**
 * Searches the maximum by the golden section, until an amount brings enough.
 * @param trials by amount; none of them brings enough
 */
function findBracketAtPeak(getNet: NetAmount, target: bigint, trials: readonly Trial[]): Bracket | undefined {
  const best = trials.filter(isValid).reduce<ValidTrial | undefined>((highest, trial) => {
    return highest === undefined || trial.net > highest.net ? trial : highest;
  }, undefined);
  const index = best === undefined ? -1 : trials.indexOf(best);
  const end = trials[index + 1];
  if (best === undefined || end === undefined) return undefined;
  let [left, middle, right] = [trials[index - 1]?.amount ?? 0n, best.amount, end.amount];
  let highest = best.net;
  for (let trial = 0; trial < MAX_PEAK_TRIALS; trial++) {
    const isLeft = middle - left > right - middle;
    const distance = ((isLeft ? middle - left : right - middle) * 382n) / 1000n;
    if (distance === 0n) return undefined;
    const amount = isLeft ? middle - distance : middle + distance;
    const net = getNet(amount);
    if (isEnough(net, target)) {
      return { below: { amount: isLeft ? left : middle, net: undefined }, above: { amount, net } };
    }
    if (typeof net === "bigint" && net > highest) {
      if (isLeft) right = middle;
      else left = middle;
      [middle, highest] = [amount, net];
    } else if (isLeft) left = amount;
    else right = amount;
  }
  return undefined;
}

/** Narrows a bracket to two neighbours, by interpolation (Illinois method) or, where that is slow, by bisection. */
function narrow({ below, above }: Bracket, getNet: NetAmount, target: bigint): bigint {
  let [low, high] = [below.amount, above.amount];
  // Twice the distance to the value between the target and the one below it, so that it is never 0.
  const toError = (net: bigint) => 2n * (net - target) + 1n;
  let lowError = below.net === undefined ? undefined : toError(below.net);
  let highError = toError(above.net);
  let movedLast: "low" | "high" | undefined;
  let slowSteps = 0;
  while (high - low > 1n) {
    const width = high - low;
    const offset =
      lowError === undefined || slowSteps >= MAX_SLOW_STEPS ? width / 2n : (-lowError * width) / (highError - lowError);
    const amount = low + (offset < 1n ? 1n : offset < width ? offset : width - 1n);
    const net = getNet(amount);
    if (isEnough(net, target)) {
      [high, highError] = [amount, toError(net)];
      if (movedLast === "high" && lowError !== undefined) lowError = halve(lowError);
      movedLast = "high";
    } else {
      [low, lowError] = [amount, typeof net === "bigint" ? toError(net) : undefined];
      if (movedLast === "low") highError = halve(highError);
      movedLast = "low";
    }
    slowSteps = 2n * (high - low) <= width ? 0 : slowSteps + 1;
  }
  return high;
}

function halve(error: bigint): bigint {
  const half = error / 2n;
  return half === 0n ? error : half;
}
