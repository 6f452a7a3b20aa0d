// Formats the members of a record for display.
import { hidden } from './secrets.ts';

/** A formatted member. */
interface Shown {
  name: string;
  /** `flag`: `text` is `true` or `false`; `code`: JSON, or a text with several lines. */
  kind: 'text' | 'flag' | 'time' | 'list' | 'code' | 'nothing';
  text: string;
  items?: readonly string[];
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
/** The maximum length of a table cell, characters. */
const LONGEST_CELL = 80;

/** Formats a value with its secrets hidden. @param isRevealed whether to show secrets. */
export function shownMember(name: string, value: unknown, isRevealed = false): Shown {
  const seen = isRevealed ? value : hidden(value, name);
  if (seen === undefined || seen === null || seen === '') return { name, kind: 'nothing', text: '' };
  if (typeof seen === 'boolean') return { name, kind: 'flag', text: String(seen) };
  if (typeof seen === 'number') return { name, kind: 'text', text: String(seen) };
  if (typeof seen === 'string') {
    const kind = TIME.test(seen) ? 'time' : seen.includes('\n') ? 'code' : 'text';
    return { name, kind, text: seen };
  }
  if (Array.isArray(seen) && seen.every((item) => typeof item === 'string'))
    return { name, kind: seen.length === 0 ? 'nothing' : 'list', text: seen.join(', '), items: seen };
  return { name, kind: 'code', text: JSON.stringify(seen, null, 2) };
}

/** Formats the members of a record in their order. */
export function shownMembers(record: Readonly<Record<string, unknown>>, isRevealed = false): Shown[] {
  return Object.entries(record).map(([name, value]) => shownMember(name, value, isRevealed));
}

/** Formats a member for a table cell. */
export function cellOf(record: Readonly<Record<string, unknown>>, name: string): Shown {
  const shown = shownMember(name, record[name]);
  const text = shown.text.length > LONGEST_CELL ? `${shown.text.slice(0, LONGEST_CELL)}…` : shown.text;
  return { ...shown, text, kind: shown.kind === 'code' || shown.kind === 'list' ? 'text' : shown.kind };
}

/**
 * Returns the names of up to four plain members that serve as columns.
 * @param isSaid reports whether another column shows the same.
 */
export function columnsOf(
  records: readonly Readonly<Record<string, unknown>>[],
  isSaid: (name: string) => boolean,
): string[] {
  const isPlain = (name: string, value: unknown) =>
    ['string', 'number', 'boolean'].includes(typeof value) && hidden(value, name) === value;
  const names = records.flatMap((record) =>
    Object.entries(record).flatMap(([name, value]) => (isPlain(name, value) ? [name] : [])),
  );
  return [...new Set(names)].filter((name) => !isSaid(name)).slice(0, 4);
}
