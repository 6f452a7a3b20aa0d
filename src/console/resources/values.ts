// Between records and the texts of a form: what is shown of a record, and the body that a posted form asks for.
import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../../management/section.ts';
import { jsonOf } from '../../runtime/json.ts';
import { withoutReturns } from '../forms.ts';
import { type Field, WHOLE } from './fields.ts';
import { HIDDEN, hidden, withSecrets } from './secrets.ts';

/** What a browser sends of a form: texts, and lists where several fields have one name. */
export type Posted = Readonly<Record<string, unknown>>;

/** A field with what is in it. */
export interface FilledField extends Omit<Field, 'fields'> {
  id: string;
  text: string;
  /** Of choices: those that are chosen. */
  chosen: readonly string[];
  isOn: boolean;
  /** Whether a choice may be left open. */
  isOpen: boolean;
  rows: number;
  fault?: string | undefined;
  fields?: FilledField[];
  /** Whether a group has something in it. */
  isFilled: boolean;
}

/** Text that was put into a field; undefined where the form did not have the field. */
function sent(posted: Posted, path: string): string | undefined {
  const value = posted[path];
  const last = Array.isArray(value) ? value.at(-1) : value;
  return typeof last === 'string' ? withoutReturns(last) : undefined;
}

const all = (posted: Posted, path: string): string[] =>
  [posted[path] ?? []].flat().filter((one): one is string => typeof one === 'string' && one !== '');

/** The value of a member of a record; undefined where it has none. */
const memberOf = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;

/** How a value is put into its field. */
function textOf({ kind }: Pick<Field, 'kind'>, value: unknown): string {
  if (value === undefined || value === null || kind === 'secret') return '';
  if (kind === 'lines' && Array.isArray(value)) return value.join('\n');
  return typeof value === 'string' && kind !== 'json' ? value : JSON.stringify(value, null, 2);
}

interface Filling {
  /** What was typed, where the form is shown again. */
  posted?: Posted | undefined;
  /** By the path of a field. */
  faults?: Readonly<Record<string, string>>;
  /** Whether there is no record yet, so that what is usual is put in. */
  isNew?: boolean;
}

/** The fields with what a record has in them, or what was typed. @param value of the members; undefined for a new one. */
export function filledFields(
  fields: readonly Field[],
  value: unknown,
  { posted, faults = {}, isNew = value === undefined }: Filling = {},
): FilledField[] {
  return fields.map((field) => {
    const current = field.path === WHOLE ? value : memberOf(value, field.name);
    const shown = current === undefined && isNew ? field.usual : current;
    const { fields: inner, ...rest } = field;
    const typed = posted && sent(posted, field.path);
    const usual = textOf(field, field.kind === 'json' ? hidden(shown, field.name) : shown);
    // What was typed of a secret is not sent back to the browser.
    const text = field.kind === 'secret' ? '' : (typed ?? usual);
    const chosen = posted ? all(posted, field.path) : [shown ?? []].flat().map(String);
    const within = inner && filledFields(inner, current, { posted, faults, isNew });
    const fault = faults[field.path];
    return {
      ...rest,
      id: `f-${field.path.replaceAll(/[^\w]/g, '-')}`,
      // A choice between yes, no and nothing said: an absent member means what the server takes for usual.
      ...(field.kind === 'switch' && shown === undefined && !field.isRequired && { kind: 'choice' as const }),
      ...(field.kind === 'switch' && { options: ['true', 'false'] }),
      text,
      chosen,
      isOn: text === 'true',
      isOpen: !field.isRequired || shown === undefined,
      rows: rowsOf(field.kind, text),
      ...(fault !== undefined && { fault }),
      ...(within && { fields: within }),
      isFilled:
        within?.some((one) => one.isFilled || one.fault !== undefined) ??
        (text !== '' || (field.kind === 'choices' && chosen.length > 0)),
    };
  });
}

/** How high a field is: text of several lines would lose them in a field of one. */
function rowsOf(kind: Field['kind'], text: string): number {
  const isLong = kind === 'json' || kind === 'lines';
  const lines = isLong || kind === 'text' ? text.split('\n').length : 1;
  return Math.min(Math.max(lines, isLong ? 3 : 1), 16);
}

/** What a form asks for, or what of it cannot be read: message keys, by the path of the field. */
export interface Asked {
  body: unknown;
  faults: Record<string, string>;
}

/**
 * The body that a form asks for.
 * @param before the record that it changes, of which only what differs is sent; undefined for a new one. Fields that
 *   the form does not have are not read: nobody sets what they do not see.
 */
export function bodyOfForm(fields: readonly Field[], posted: Posted, before?: unknown): Asked {
  const faults: Record<string, string> = {};
  const [first] = fields;
  if (first?.path === WHOLE) return { body: readValue(first, posted, before, faults), faults };
  const body = changedMembers(fields, posted, { before, isChange: before !== undefined, faults });
  return { body, faults };
}

interface Reading {
  before: unknown;
  isChange: boolean;
  faults: Record<string, string>;
}

function changedMembers(fields: readonly Field[], posted: Posted, reading: Reading): Record<string, unknown> {
  const { before, isChange, faults } = reading;
  const members: Record<string, unknown> = {};
  for (const field of fields) {
    const old = memberOf(before, field.name);
    const value =
      field.kind === 'group' ? groupOf(field, posted, old, reading) : readValue(field, posted, old, faults);
    if (value === undefined) continue;
    if (isChange && (isDeepStrictEqual(value, old) || (value === null && old === undefined))) continue;
    members[field.name] = value;
  }
  return members;
}

/** An object within a body: all of it, as it was and with what the form changes. */
function groupOf(field: Field, posted: Posted, old: unknown, { isChange, faults }: Reading): unknown {
  const changed = changedMembers(field.fields ?? [], posted, { before: old, isChange, faults });
  if (Object.keys(changed).length === 0) return isObject(old) || !field.isRequired ? undefined : {};
  return { ...(isObject(old) ? old : {}), ...changed };
}

/** What a field says; null for one that was emptied, undefined for one that says nothing. */
function readValue(field: Field, posted: Posted, old: unknown, faults: Record<string, string>): unknown {
  if (field.kind === 'choices') return readChoices(field, posted, old);
  const text = sent(posted, field.path);
  if (text === undefined) return undefined;
  if (field.kind === 'secret') return text === '' ? undefined : text;
  if (text === withoutReturns(textOf(field, old)) && old !== undefined) return old;
  if (text.trim() === '') return emptied(field, old, faults);
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
  // The form has an empty field of the name, so that it is known when nothing is chosen.
  if (!Object.hasOwn(posted, field.path)) return undefined;
  const chosen = all(posted, field.path);
  if (chosen.length === 0 && (old === undefined || old === null)) return undefined;
  if (Array.isArray(old) && isDeepStrictEqual([...old].sort(), [...chosen].sort())) return old;
  return chosen;
}

function readJson(field: Field, text: string, old: unknown, faults: Record<string, string>): unknown {
  const value = jsonOf(text);
  const whole = value === undefined ? undefined : withSecrets(value, old);
  if (value === undefined) faults[field.path] = 'console.resources.fault.json';
  else if (JSON.stringify(whole ?? null).includes(HIDDEN) || hasGone(value, whole))
    faults[field.path] = 'console.resources.fault.secret';
  return whole;
}

/** Whether a hidden secret is at a place where there was none: it is not known which one is meant. */
function hasGone(value: unknown, whole: unknown): boolean {
  if (value === HIDDEN) return whole === undefined;
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, inner]) =>
    hasGone(inner, (whole as Record<string, unknown>)[name]),
  );
}

/** What an emptied field asks for. */
function emptied(field: Field, old: unknown, faults: Record<string, string>): unknown {
  if (old === undefined || old === null) return old;
  if (field.isNullable) return null;
  if (field.kind === 'lines') return [];
  // The schema says whether it may be empty.
  if (field.kind === 'text') return '';
  faults[field.path] = 'console.resources.fault.empty';
  return undefined;
}
