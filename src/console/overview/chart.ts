// A chart of bars as the page draws it: numbers alone, which its template puts into an SVG.

export interface Bar {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The size of a chart's own coordinates; the page makes it as large as there is room. */
export const CHART = { width: 240, height: 64 };
/** What of a part is its bar. */
const FILLED = 0.72;
/** The least height of what is not nothing: few beside many are seen, too. */
const LEAST = 2;

/** The bars of values, the first at the left. */
export function barsOf(values: readonly number[]): Bar[] {
  const most = Math.max(1, ...values);
  const room = CHART.width / Math.max(1, values.length);
  return values.map((value, n) => {
    const height = value === 0 ? 0 : Math.max(LEAST, (value / most) * CHART.height);
    return {
      x: rounded(n * room + (room * (1 - FILLED)) / 2),
      y: rounded(CHART.height - height),
      width: rounded(room * FILLED),
      height: rounded(height),
    };
  });
}

const rounded = (value: number): number => Math.round(value * 100) / 100;
