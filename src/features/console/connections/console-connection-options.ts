// The options of a connection in a form: their values as texts, and the options that a form means. How a kind of field is
// formatted and how it is parsed are side by side, because each must undo the other.

import type { z } from 'zod';
import { textsIn } from '../../../capabilities/scripts/scripts.ts';
import { strategyRecord } from '../../../records/connections/connections.ts';
import { connectionSecrets } from '../../../records/secrets.ts';
import { type FormFault, faultIn } from '../form-fault.ts';
import { withoutReturns } from '../forms.ts';
import { syntaxFault } from '../json-text.ts';
import type { FaultyField } from '../render.ts';

interface FilledField extends OptionField {
  /** The value as text. A switch has `true` or an empty text, a secret always an empty one. */
  value: string;
  /** Whether the option has a value; a secret with a value is kept when nothing is entered. */
  isSet: boolean;
}

type Options = Readonly<Record<string, unknown>>;

export function secretsIn(options: Options): string[] {
  return Object.entries(options).flatMap(([name, value]) => (SECRETS.has(name) ? textsIn(value) : []));
}

function fieldWithValue(field: OptionField, options: Options): FilledField {
  const value = options[field.name];
  const isSet = value !== undefined && value !== null && value !== '';
  return { ...field, isSet, value: field.kind === 'secret' ? '' : textOf(field, value) };
}

interface RefusedForm {
  entered?: Readonly<Record<string, string>> | undefined;
  /** Faults of values that cannot be parsed, by the name of the field. */
  faults?: Readonly<Record<string, FormFault>> | undefined;
  /** The refusal of the Management API, which may name an option. */
  fault?: FormFault | undefined;
}

/** Returns the fields of a form with the values of the options, or with the entered values of a refused form. */
export type FilledFields = ReturnType<typeof filledFields>;

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

/** @throws Error for invalid JSON. */
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

// The options of a strategy as form fields, derived from its schema.

export type OptionKind = 'text' | 'long' | 'secret' | 'number' | 'switch' | 'choice' | 'list' | 'json';

interface OptionField {
  name: string;
  kind: OptionKind;
  choices?: readonly string[];
  /** The default value. */
  usual?: string | number | boolean;
}

type Schema = z.core.$ZodType;

/** Options that have a page of their own, or that an import has left behind. */
const OMITTED_OPTIONS = new Set(['scripts', 'customScripts', 'oidc_metadata']);

/** Options that are texts with several lines. */
const MULTILINE_OPTIONS = new Set([
  'metadataXml',
  'signingCert',
  'cert',
  'requestTemplate',
  'LDAP_CA',
  'fedMetadataXml',
  'template',
]);
/** Options that no page shows, because they are stored encrypted. */
const SECRETS: ReadonlySet<string> = new Set(connectionSecrets.map((path) => path.split('.')[1] ?? ''));

/** The options that most connections need, in the order in which they are shown. */
const MAIN_OPTIONS = [
  ...[
    'client_id',
    'client_secret',
    'discovery_url',
    'issuer',
    'authorizationURL',
    'tokenURL',
    'userInfoURL',
    'scope',
  ],
  ...['domain', 'tenant_domain', 'adfs_server', 'type', 'team_id', 'kid', 'app_secret'],
  ...[
    'signInEndpoint',
    'metadataUrl',
    'metadataXml',
    'signingCert',
    'signOutEndpoint',
    'pingFederateBaseUrl',
  ],
  ...['LDAP_URL', 'LDAP_BASE', 'LDAP_BIND_USER', 'LDAP_BIND_PASSWORD', 'LDAP_USER_BY_NAME'],
  ...[
    'passwordPolicy',
    'requires_username',
    'disable_signup',
    'brute_force_protection',
    'totp',
    'import_mode',
  ],
  ...['attributes', 'precedence', 'authentication_methods', 'password_options'],
  ...['pkce_enabled', 'set_user_root_attributes', 'domain_aliases', 'icon_url'],
];

/** Options with an explanation: the message `console.connections.help.<name>`. */
const WITH_HELP: ReadonlySet<string> = new Set([
  ...MAIN_OPTIONS,
  ...['non_persistent_attrs', 'upstream_params', 'entityId', 'signSAMLRequest', 'fieldsMap', 'attribute_map'],
  ...['enabledDatabaseCustomization', 'configuration', 'LDAP_STARTTLS', 'LDAP_CA', 'GROUPS', 'customHeaders'],
]);

/** Returns the fields of a strategy's options; `main` are those that most connections need. */
export function fieldsOf(strategy: string): { main: OptionField[]; further: OptionField[] } {
  const shape = shapeOf(strategyRecord(strategy)?.options);
  const all = Object.entries(shape).flatMap(([name, schema]) =>
    OMITTED_OPTIONS.has(name) ? [] : [fieldOf(name, schema)],
  );
  const main = MAIN_OPTIONS.flatMap((name) => all.find((one) => one.name === name) ?? []);
  return { main, further: all.filter((one) => !main.includes(one)) };
}

function fieldOf(name: string, schema: Schema): OptionField {
  const { inner, usual } = unwrap(schema);
  const choices = choicesOf(inner);
  const kind = SECRETS.has(name) ? 'secret' : kindOf(name, inner);
  return {
    name,
    kind,
    ...(kind === 'choice' && choices !== undefined && { choices }),
    ...((typeof usual === 'string' || typeof usual === 'number' || typeof usual === 'boolean') && { usual }),
  };
}

/** Removes `optional`, `default` and other wrappers. @returns the inner schema and the default. */
function unwrap(schema: Schema, usual?: unknown): { inner: Schema; usual: unknown } {
  const def = defOf(schema);
  if (def.type === 'pipe') {
    const { in: first, out } = def;
    return unwrap(first !== undefined && typeOf(first) !== 'transform' ? first : (out ?? schema), usual);
  }
  if (def.innerType === undefined) return { inner: schema, usual };
  const defaultValue = def.type === 'default' || def.type === 'prefault' ? def.defaultValue : undefined;
  return unwrap(def.innerType, usual ?? defaultValue);
}

const typeOf = (schema: Schema): string => schema._zod.def.type;

/** The parts of a schema of zod that are read here. Which ones exist depends on the type. */
interface SchemaDef {
  type: string;
  /** Of `optional`, `default` and other wrappers. */
  innerType?: Schema;
  /** Of `default` and `prefault`. */
  defaultValue?: unknown;
  /** Of `pipe`. */
  in?: Schema;
  out?: Schema;
  /** Of `object`. */
  shape?: Record<string, Schema>;
  /** Of `array`. */
  element?: Schema;
  /** Of `union`. */
  options?: Schema[];
  /** Of `enum`. */
  entries?: Record<string, string>;
}

// The types of zod only declare these members for schemas of a known type.
const defOf = (schema: Schema) => schema._zod.def as SchemaDef;

function shapeOf(schema: Schema | undefined): Record<string, Schema> {
  if (schema === undefined) return {};
  const { inner } = unwrap(schema);
  return defOf(inner).shape ?? {};
}

function kindOf(name: string, schema: Schema): OptionKind {
  const type = typeOf(schema);
  if (MULTILINE_OPTIONS.has(name)) return 'long';
  if (type === 'string' || type === 'literal') return 'text';
  if (type === 'number') return 'number';
  if (type === 'boolean') return 'switch';
  if (type === 'enum') return 'choice';
  const { element, options } = defOf(schema);
  if (element !== undefined) return isText(element) ? 'list' : 'json';
  if (options === undefined) return 'json';
  const kinds = options.map((one) => kindOf('', unwrap(one).inner));
  if (kinds.includes('switch')) return 'switch';
  if (kinds.includes('json')) return 'json';
  return kinds.includes('list') ? 'list' : 'text';
}

const isText = (schema: Schema) => ['string', 'enum', 'pipe'].includes(typeOf(schema));

function choicesOf(schema: Schema): string[] | undefined {
  const { entries } = defOf(schema);
  return entries && Object.values(entries);
}
