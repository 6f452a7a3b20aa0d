// How the members of a record are shown.
import { hidden } from './secrets.ts';

/** A member of a record. */
interface Shown {
  name: string;
  /** `flag`: `text` is `true` or `false`; `code`: JSON, or text of several lines. */
  kind: 'text' | 'flag' | 'time' | 'list' | 'code' | 'nothing';
  text: string;
  items?: readonly string[];
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
/** What a cell of a table holds, characters. */
const LONGEST_CELL = 80;

/** A value without its secrets. @param isRevealed whether secrets are shown, too. */
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

/** The members of a record, as they come. */
export function shownMembers(record: Readonly<Record<string, unknown>>, isRevealed = false): Shown[] {
  return Object.entries(record).map(([name, value]) => shownMember(name, value, isRevealed));
}

/** What a cell of a table says of a member. */
export function cellOf(record: Readonly<Record<string, unknown>>, name: string): Shown {
  const shown = shownMember(name, record[name]);
  const text = shown.text.length > LONGEST_CELL ? `${shown.text.slice(0, LONGEST_CELL)}…` : shown.text;
  return { ...shown, text, kind: shown.kind === 'code' || shown.kind === 'list' ? 'text' : shown.kind };
}

/** Members that a table of these records shows: the first few that are plain. @param isSaid whether another column has it. */
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
