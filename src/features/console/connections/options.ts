// The options of a connection in a form: their values as texts, and the options that a form means. How a kind of field is
// formatted and how it is parsed are side by side, because each must undo the other.
import { textsIn } from '../../../capabilities/scripts/scripts.ts';
import { type FormFault, faultIn } from '../form-fault.ts';
import { withoutReturns } from '../forms.ts';
import { syntaxFault } from '../json-text.ts';
import type { FaultyField } from '../render.ts';
import { fieldsOf, type OptionField, SECRETS, WITH_HELP } from './option-fields.ts';

/** A field with its value. */
interface FilledField extends OptionField {
  /** The value as text. A switch has `true` or an empty text, a secret always an empty one. */
  value: string;
  /** Whether the option has a value; a secret with a value is kept when nothing is entered. */
  isSet: boolean;
}

type Options = Readonly<Record<string, unknown>>;

/** Returns the strings in a connection's secrets. */
export function secretsIn(options: Options): string[] {
  return Object.entries(options).flatMap(([name, value]) => (SECRETS.has(name) ? textsIn(value) : []));
}

/** Returns a field with the value of its option. */
function fieldWithValue(field: OptionField, options: Options): FilledField {
  const value = options[field.name];
  const isSet = value !== undefined && value !== null && value !== '';
  return { ...field, isSet, value: field.kind === 'secret' ? '' : textOf(field, value) };
}

/** A form that was refused. */
interface RefusedForm {
  entered?: Readonly<Record<string, string>> | undefined;
  /** Faults of values that cannot be parsed, by the name of the field. */
  faults?: Readonly<Record<string, FormFault>> | undefined;
  /** The refusal of the Management API, which may name an option. */
  fault?: FormFault | undefined;
}

/** Returns the fields of a form with the values of the options, or with the entered values of a refused form. */
export function filledFields(
  strategy: string,
  options: Options,
  { entered, faults = {}, fault }: RefusedForm = {},
) {
  const shown = (field: OptionField) => {
    const { name } = field;
    const filledField = fieldWithValue(field, options);
    const value =
      entered === undefined || filledField.kind === 'secret' ? filledField.value : (entered[name] ?? '');
    const fieldFault = faults[name] ?? faultIn(fault, `options.${name}`);
    return { ...filledField, value, hasHelp: WITH_HELP.has(name), ...(fieldFault && { fault: fieldFault }) };
  };
  const { main, further } = fieldsOf(strategy);
  return { main: main.map(shown), further: further.map(shown) };
}

/** Returns the first faulty field. */
export function faultyOption(
  { main, further }: ReturnType<typeof filledFields>,
  has: (key: string) => boolean,
): FaultyField | undefined {
  const found = [...main, ...further].find(({ fault }) => fault !== undefined);
  if (found === undefined) return undefined;
  const { name } = found;
  const key = `console.option.${name}`;
  return { id: `option-${name}`, label: has(key) ? `t:${key}` : { text: name } };
}

/**
 * Returns the options with the values of a form. Unchanged options stay as they are, and a secret for which nothing was
 * entered is kept.
 * @param entered values by the names of options; options that are missing are not part of the form.
 * @returns also the faults of values that cannot be parsed, by name.
 */
export function withEntered(
  strategy: string,
  before: Options,
  entered: Readonly<Record<string, string>>,
): { options: Record<string, unknown>; faults: Record<string, FormFault> } {
  const { main, further } = fieldsOf(strategy);
  const options: Record<string, unknown> = { ...before };
  const faults: Record<string, FormFault> = {};
  for (const field of [...main, ...further]) {
    const { [field.name]: sentText } = entered;
    if (sentText === undefined) continue;
    const text = withoutReturns(sentText);
    if (text.trim() === fieldWithValue(field, before).value.trim()) continue;
    try {
      const value = readField(field, text);
      if (value === undefined) delete options[field.name];
      else options[field.name] = value;
    } catch {
      faults[field.name] = syntaxFault(text);
    }
  }
  return { options, faults };
}

/** Parses the text of a field. @throws Error for invalid JSON. */
function readField({ name, kind }: OptionField, text: string): unknown {
  if (kind === 'switch') return text === 'true';
  if (text.trim() === '') return undefined;
  // A text that is not a number is sent unchanged: the API words the error.
  if (kind === 'number') return Number.isFinite(Number(text)) ? Number(text) : text;
  if (kind === 'json') return JSON.parse(text);
  if (kind === 'secret' && JSON_SECRETS.has(name)) return JSON.parse(text);
  if (kind === 'list') return linesOf(text);
  return kind === 'long' ? text : text.trim();
}

/** Secrets that are entered as JSON. */
const JSON_SECRETS = new Set(['signing_key', 'gateway_authentication', 'configuration', 'customHeaders']);

const linesOf = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

function textOf({ kind, usual }: OptionField, value: unknown): string {
  if (kind === 'switch') return (value ?? usual) === true || value === 'true' ? 'true' : '';
  if (value === undefined || value === null) return '';
  if (kind === 'list') return [value].flat().map(String).join('\n');
  return typeof value === 'object' ? JSON.stringify(value, null, 2) : String(value);
}
