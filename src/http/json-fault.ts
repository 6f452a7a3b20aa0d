// Locates the syntax error in JSON that a person has written.
import { jsonOf } from '../runtime/json.ts';

/**
 * Finds where a text stops being JSON. The parser gives a position only for some errors, so the longest valid
 * beginning is searched by bisection.
 * @returns line and column, counted from 1, of the first wrong character, or of the end when something is missing;
 * undefined for valid JSON.
 */
export function jsonFaultAt(text: string): { line: number; column: number } | undefined {
  if (jsonOf(text) !== undefined) return undefined;
  let [good, wrong] = [0, text.length + 1];
  while (wrong - good > 1) {
    const middle = Math.floor((good + wrong) / 2);
    if (isBeginning(text.slice(0, middle))) good = middle;
    else wrong = middle;
  }
  const before = text.slice(0, good).split('\n');
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

/** Reports whether appending text could make it valid JSON. */
function isBeginning(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (thrown) {
    const message = String(thrown);
    const at = /at position (\d+)/.exec(message)?.[1];
    return /end of JSON|Unterminated string/.test(message) || Number(at ?? -1) === text.length;
  }
}
