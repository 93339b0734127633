import { formatPercent } from "../shared/format/amounts.js";
import type uPlot from "../uPlot.esm.js";
import { effectiveRate, formatAxisValues, type QuotePoint, swapRate } from "./rate-curve.js";

export interface RateCurveChart {
  /** Draws the chart again with the colours of the current theme. */
  redraw(): void;
  destroy(): void;
}

interface RateCurveOptions {
  readonly token: string;
  /** Converts an amount to a number: for drawing only, never for arithmetic. */
  readonly toNumber: (raw: bigint) => number;
  readonly points: readonly QuotePoint[];
  readonly quotedAmount: bigint;
  /** Called with a description of the point under the pointer, or undefined without one. */
  readonly onPoint: (text: string | undefined) => void;
}

const CHART_HEIGHT_PX = 260;

/** Draws the amount received per unit sent over the amount. Loads the chart library with the first curve. */
export async function drawRateCurve(root: HTMLElement, options: RateCurveOptions): Promise<RateCurveChart> {
  const { default: Plot } = await import("../uPlot.esm.js");
  const { token, toNumber, points, quotedAmount, onPoint } = options;
  const data: uPlot.AlignedData = [
    points.map(({ sent }) => toNumber(sent)),
    points.map((point) => swapRate(point) ?? null),
    points.map(effectiveRate),
  ];
  const colour = (name: string) => () => readCssColour(root, name);
  const width = (): number => Math.max(200, root.clientWidth);
  const font = "12px system-ui, sans-serif";
  const axis = {
    stroke: colour("--muted"),
    font,
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
  };
  const line = { width: 2, points: { show: false } };
  const plot = new Plot(
    {
      width: width(),
      height: CHART_HEIGHT_PX,
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
      scales: {
        x: { time: false, distr: 3, range: (_, min, max) => [min, max] },
        y: { range: (_, min, max) => padRange(min, max) },
      },
      axes: [
        {
          ...axis,
          size: 36,
          label: `${token} sent`,
          labelSize: 18,
          labelFont: font,
          labelGap: 0,
          values: (_, splits) => splits.map(formatCompact),
          splits: (_, __, min, max) => powersOfTenBetween(min, max),
          // The few ticks keep their labels even on a narrow chart.
          filter: (_, splits) => splits,
        },
        { ...axis, size: 62, values: (_, splits) => formatAxisValues(splits) },
      ],
      series: [
        {},
        { ...line, width: 1.5, dash: [5, 4], stroke: colour("--muted") },
        { ...line, stroke: colour("--accent") },
      ],
      hooks: {
        drawClear: [(self) => shadeUndeliverable(self, points, readCssColour(root, "--bad-soft"))],
        draw: [(self) => drawMarker(self, toNumber(quotedAmount), readCssColour(root, "--text"))],
        setCursor: [
          ({ cursor }) => {
            const point = cursor.idx === null || cursor.idx === undefined ? undefined : points[cursor.idx];
            onPoint(point && describePoint(point, token, toNumber));
          },
        ],
      },
    },
    data,
    root,
  );
  const observer = new ResizeObserver(() => {
    // The width is 0 while another view is shown.
    if (root.clientWidth > 0) plot.setSize({ width: width(), height: CHART_HEIGHT_PX });
  });
  observer.observe(root);
  return {
    redraw: () => plot.redraw(false, true),
    destroy() {
      observer.disconnect();
      plot.destroy();
    },
  };
}

/** Shades the amounts that cannot be delivered: those from the first such point on. */
function shadeUndeliverable({ ctx, bbox, data, valToPos }: uPlot, points: readonly QuotePoint[], colour: string): void {
  const amount = data[0][points.findIndex(({ canBeDelivered }) => !canBeDelivered)];
  if (amount === undefined) return;
  const left = valToPos(amount, "x", true);
  ctx.save();
  ctx.fillStyle = colour;
  ctx.fillRect(left, bbox.top, bbox.left + bbox.width - left, bbox.height);
  ctx.restore();
}

/** Marks the quoted amount with a line and a point on the curve. */
function drawMarker(plot: uPlot, amount: number, colour: string): void {
  const { ctx, bbox, data } = plot;
  const [amounts, , rates] = data;
  const index = amounts.indexOf(amount);
  const rate = rates?.[index];
  const x = plot.valToPos(amount, "x", true);
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.globalAlpha = 0.5;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.globalAlpha = 1;
  if (typeof rate === "number") {
    ctx.beginPath();
    ctx.arc(x, plot.valToPos(rate, "y", true), 5 * devicePixelRatio, 0, 2 * Math.PI);
    ctx.fill();
  }
  ctx.restore();
}

function describePoint(point: QuotePoint, token: string, toNumber: (raw: bigint) => number): string {
  const { priceImpact, canBeDelivered } = point;
  const impact = priceImpact === undefined ? "" : `, price impact ${formatPercent(priceImpact / 100)}`;
  const suffix = canBeDelivered ? impact : `${impact}, cannot be delivered now`;
  return `${formatCompact(toNumber(point.sent))} ${token} sent: ${effectiveRate(point).toFixed(6)} received per unit sent${suffix}`;
}

/** Resolves a CSS custom property, which may depend on the theme, by applying it to an element. */
function readCssColour(root: HTMLElement, name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  root.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function padRange(min: number, max: number): [number, number] {
  const pad = (max - min) * 0.08 || 0.001;
  return [min === 0 ? 0 : min - pad, max + pad];
}

/** Formats a number of any size in a few characters. */
function formatCompact(value: number): string {
  if (value >= 1e15 || value < 1e-6) return Number(value.toPrecision(3)).toExponential().replace("+", "");
  return value.toLocaleString("en", { notation: "compact", maximumSignificantDigits: 3 });
}

function powersOfTenBetween(min: number, max: number): number[] {
  const first = Math.ceil(Math.log10(min) - 1e-9);
  return Array.from({ length: 5 }, (_, index) => 10 ** (first + index)).filter((value) => value <= max * (1 + 1e-9));
}
