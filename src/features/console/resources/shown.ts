// Formats the members of a record for display.
import { maskSecrets } from './console-resource-secrets.ts';

export interface ShownMember {
  name: string;
  /** `flag`: `text` is `true` or `false`; `code`: JSON, or a text with several lines. */
  kind: 'text' | 'flag' | 'time' | 'list' | 'code' | 'nothing';
  text: string;
  items?: readonly string[];
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;
/** The maximum length of a table cell, characters. */
const MAX_CELL_LENGTH = 80;

/** Formats a value with its secrets hidden. @param isRevealed whether to show secrets. */
export function shownMember(name: string, value: unknown, isRevealed = false): ShownMember {
  const visible = isRevealed ? value : maskSecrets(value, name);
  if (visible === undefined || visible === null || visible === '') return { name, kind: 'nothing', text: '' };
  if (typeof visible === 'boolean') return { name, kind: 'flag', text: String(visible) };
  if (typeof visible === 'number') return { name, kind: 'text', text: String(visible) };
  if (typeof visible === 'string') {
    const kind = TIME.test(visible) ? 'time' : visible.includes('\n') ? 'code' : 'text';
    return { name, kind, text: visible };
  }
  if (Array.isArray(visible) && visible.every((item) => typeof item === 'string'))
    return {
      name,
      kind: visible.length === 0 ? 'nothing' : 'list',
      text: visible.join(', '),
      items: visible,
    };
  return { name, kind: 'code', text: JSON.stringify(visible, null, 2) };
}

/** Formats the members of a record in their order. */
export function shownMembers(record: Readonly<Record<string, unknown>>, isRevealed = false): ShownMember[] {
  return Object.entries(record).map(([name, value]) => shownMember(name, value, isRevealed));
}

export function cellOf(record: Readonly<Record<string, unknown>>, name: string): ShownMember {
  const shown = shownMember(name, record[name]);
  const text = shown.text.length > MAX_CELL_LENGTH ? `${shown.text.slice(0, MAX_CELL_LENGTH)}…` : shown.text;
  return { ...shown, text, kind: shown.kind === 'code' || shown.kind === 'list' ? 'text' : shown.kind };
}

/**
 * Returns the names of up to four plain members that serve as columns.
 * @param isShownElsewhere reports whether another column shows the same.
 */
export function columnsOf(
  records: readonly Readonly<Record<string, unknown>>[],
  isShownElsewhere: (name: string) => boolean,
): string[] {
  const isPlain = (name: string, value: unknown) =>
    ['string', 'number', 'boolean'].includes(typeof value) && maskSecrets(value, name) === value;
  const names = records.flatMap((record) =>
    Object.entries(record).flatMap(([name, value]) => (isPlain(name, value) ? [name] : [])),
  );
  return [...new Set(names)].filter((name) => !isShownElsewhere(name)).slice(0, 4);
}
