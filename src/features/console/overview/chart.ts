// Computes a bar chart, which a template draws as SVG.

export interface Bar {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The size of a chart in its own coordinates; the page scales it. */
export const CHART = { width: 240, height: 64 };
/** The share of each column's width that the bar fills. */
const BAR_SHARE = 0.72;
/** The minimum height of a bar whose value is not zero, so that small values are visible beside large ones. */
const MIN_BAR_HEIGHT = 2;

/** Returns the bars of values, the first at the left. */
export function barsOf(values: readonly number[]): Bar[] {
  const max = Math.max(1, ...values);
  const columnWidth = CHART.width / Math.max(1, values.length);
  return values.map((value, n) => {
    const height = value === 0 ? 0 : Math.max(MIN_BAR_HEIGHT, (value / max) * CHART.height);
    return {
      x: rounded(n * columnWidth + (columnWidth * (1 - BAR_SHARE)) / 2),
      y: rounded(CHART.height - height),
      width: rounded(columnWidth * BAR_SHARE),
      height: rounded(height),
    };
  });
}

const rounded = (value: number): number => Math.round(value * 100) / 100;
