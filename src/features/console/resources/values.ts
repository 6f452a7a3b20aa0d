// Converts between records and form fields: the values that a form shows, and the body that a posted form means.
import { isDeepStrictEqual } from 'node:util';
import { jsonOf } from '../../../runtime/json.ts';
import { isObject } from '../../management/section.ts';
import { withoutReturns } from '../forms.ts';
import { type Field, WHOLE } from './console-resource-fields.ts';
import { HIDDEN, maskSecrets, withSecrets } from './console-resource-secrets.ts';

/** The fields of a posted form: strings, and lists where several fields have one name. */
export type Posted = Readonly<Record<string, unknown>>;

export interface FilledField extends Omit<Field, 'fields'> {
  id: string;
  text: string;
  /** The selected options. */
  chosen: readonly string[];
  isOn: boolean;
  /** Whether a choice may be left open. */
  isOpen: boolean;
  rows: number;
  fault?: string | undefined;
  fields?: FilledField[];
  /** Whether the field, or a member of the group, has a value. */
  isFilled: boolean;
}

/** Returns the text of a field; undefined when the form did not have the field. */
function sentText(posted: Posted, path: string): string | undefined {
  const value = posted[path];
  const last = Array.isArray(value) ? value.at(-1) : value;
  return typeof last === 'string' ? withoutReturns(last) : undefined;
}

const sentTexts = (posted: Posted, path: string): string[] =>
  [posted[path] ?? []].flat().filter((one): one is string => typeof one === 'string' && one !== '');

/** Returns a member of a record; undefined when it is missing. */
const memberOf = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;

function textOf({ kind }: Pick<Field, 'kind'>, value: unknown): string {
  if (value === undefined || value === null || kind === 'secret') return '';
  if (kind === 'lines' && Array.isArray(value)) return value.join('\n');
  return typeof value === 'string' && kind !== 'json' ? value : JSON.stringify(value, null, 2);
}

interface FillOptions {
  /** The entered values, when the form is shown again. */
  posted?: Posted | undefined;
  /** By the path of a field. */
  faults?: Readonly<Record<string, string>>;
  /** Whether there is no record yet, so that defaults are filled in. */
  isNew?: boolean;
}

/**
 * Returns the fields with the values of a record, or those that were entered.
 * @param value the record; undefined for a new one.
 */
export function filledFields(
  fields: readonly Field[],
  value: unknown,
  { posted, faults = {}, isNew = value === undefined }: FillOptions = {},
): FilledField[] {
  return fields.map((field) => {
    const current = field.path === WHOLE ? value : memberOf(value, field.name);
    const shown = current === undefined && isNew ? field.usual : current;
    const { fields: inner, ...rest } = field;
    const entered = posted && sentText(posted, field.path);
    const storedText = textOf(field, field.kind === 'json' ? maskSecrets(shown, field.name) : shown);
    // An entered secret is not sent back to the browser.
    const text = field.kind === 'secret' ? '' : (entered ?? storedText);
    const chosen = posted ? sentTexts(posted, field.path) : [shown ?? []].flat().map(String);
    const innerFields = inner && filledFields(inner, current, { posted, faults, isNew });
    const fault = faults[field.path];
    return {
      ...rest,
      id: `f-${field.path.replaceAll(/[^\w]/g, '-')}`,
      // A switch that may be left open becomes a choice of yes, no and open: an absent member has the server's
      // default.
      ...(field.kind === 'switch' && shown === undefined && !field.isRequired && { kind: 'choice' as const }),
      ...(field.kind === 'switch' && { options: ['true', 'false'] }),
      text,
      chosen,
      isOn: text === 'true',
      isOpen: !field.isRequired || shown === undefined,
      rows: rowsOf(field.kind, text),
      ...(fault !== undefined && { fault }),
      ...(innerFields && { fields: innerFields }),
      isFilled:
        innerFields?.some((one) => one.isFilled || one.fault !== undefined) ??
        (text !== '' || (field.kind === 'choices' && chosen.length > 0)),
    };
  });
}

/** Returns the height of a field in rows: a single-line field would lose the line breaks of a text. */
function rowsOf(kind: Field['kind'], text: string): number {
  const isLong = kind === 'json' || kind === 'lines';
  const lines = isLong || kind === 'text' ? text.split('\n').length : 1;
  return Math.min(Math.max(lines, isLong ? 3 : 1), 16);
}

/** The body of a form, and the faults of values that cannot be parsed, as message keys by field path. */
export interface FormBody {
  body: unknown;
  faults: Record<string, string>;
}

/**
 * Fields that the form did not contain are left out, so that nobody changes what they do not see.
 * @param before the record that is changed, so that only differences are returned; undefined for a new one.
 */
export function bodyOfForm(fields: readonly Field[], posted: Posted, before?: unknown): FormBody {
  const faults: Record<string, string> = {};
  const [first] = fields;
  if (first?.path === WHOLE) return { body: readValue(first, posted, before, faults), faults };
  const body = changedMembers(fields, posted, { before, isChange: before !== undefined, faults });
  return { body, faults };
}

interface ReadOptions {
  before: unknown;
  isChange: boolean;
  faults: Record<string, string>;
}

function changedMembers(
  fields: readonly Field[],
  posted: Posted,
  options: ReadOptions,
): Record<string, unknown> {
  const { before, isChange, faults } = options;
  const members: Record<string, unknown> = {};
  for (const field of fields) {
    const old = memberOf(before, field.name);
    const value =
      field.kind === 'group' ? groupOf(field, posted, old, options) : readValue(field, posted, old, faults);
    if (value === undefined) continue;
    if (isChange && (isDeepStrictEqual(value, old) || (value === null && old === undefined))) continue;
    members[field.name] = value;
  }
  return members;
}

/** Returns a changed nested object in full, with its unchanged members; undefined when nothing changed. */
function groupOf(field: Field, posted: Posted, old: unknown, { isChange, faults }: ReadOptions): unknown {
  const changed = changedMembers(field.fields ?? [], posted, { before: old, isChange, faults });
  if (Object.keys(changed).length === 0) return isObject(old) || !field.isRequired ? undefined : {};
  return { ...(isObject(old) ? old : {}), ...changed };
}

/** Parses a field; null when it was emptied, undefined when it says nothing. */
function readValue(field: Field, posted: Posted, old: unknown, faults: Record<string, string>): unknown {
  if (field.kind === 'choices') return readChoices(field, posted, old);
  const text = sentText(posted, field.path);
  if (text === undefined) return undefined;
  if (field.kind === 'secret') return text === '' ? undefined : text;
  if (text === withoutReturns(textOf(field, old)) && old !== undefined) return old;
  if (text.trim() === '') return emptiedValue(field, old, faults);
  switch (field.kind) {
    case 'number': {
      const number = Number(text);
      if (Number.isFinite(number)) return number;
      faults[field.path] = 'console.resources.fault.number';
      return undefined;
    }
    case 'switch':
      return text === 'true';
    case 'lines':
      return text
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== '');
    case 'json':
      return readJson(field, text, old, faults);
    default:
      return text;
  }
}

function readChoices(field: Field, posted: Posted, old: unknown): unknown {
  // The form contains an empty field of this name, which shows that nothing was selected.
  if (!Object.hasOwn(posted, field.path)) return undefined;
  const chosen = sentTexts(posted, field.path);
  if (chosen.length === 0 && (old === undefined || old === null)) return undefined;
  if (Array.isArray(old) && isDeepStrictEqual([...old].sort(), [...chosen].sort())) return old;
  return chosen;
}

function readJson(field: Field, text: string, old: unknown, faults: Record<string, string>): unknown {
  const value = jsonOf(text);
  const restored = value === undefined ? undefined : withSecrets(value, old);
  if (value === undefined) faults[field.path] = 'console.resources.fault.json';
  else if (JSON.stringify(restored ?? null).includes(HIDDEN) || hasLostSecret(value, restored))
    faults[field.path] = 'console.resources.fault.secret';
  return restored;
}

/** Reports whether a hidden secret is in a place where there was none, so that it cannot be restored. */
function hasLostSecret(value: unknown, restored: unknown): boolean {
  if (value === HIDDEN) return restored === undefined;
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, inner]) =>
    hasLostSecret(inner, (restored as Record<string, unknown>)[name]),
  );
}

function emptiedValue(field: Field, old: unknown, faults: Record<string, string>): unknown {
  if (old === undefined || old === null) return old;
  if (field.isNullable) return null;
  if (field.kind === 'lines') return [];
  // The schema decides whether it may be empty.
  if (field.kind === 'text') return '';
  faults[field.path] = 'console.resources.fault.empty';
  return undefined;
}
