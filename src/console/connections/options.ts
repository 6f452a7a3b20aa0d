// The options of a connection as the fields of a form, from the schema of its strategy: what the schema knows is a field, and
// what a form says is put into the options that there are. Over 250 lines with its comments: how a kind of
// field is shown and how it is read stand side by side, because each has to undo what the other does.
import type { z } from 'zod';
import { strategyRecord } from '../../records/connections.ts';
import { connectionSecrets } from '../../records/secrets.ts';
import { textsIn } from '../../scripts/scripts.ts';
import { type FormFault, faultIn } from '../form-fault.ts';
import { withoutReturns } from '../forms.ts';
import { syntaxFault } from '../json-text.ts';
import type { FaultyField } from '../render.ts';

/** How an option is typed. */
type OptionKind = 'text' | 'long' | 'secret' | 'number' | 'switch' | 'choice' | 'list' | 'json';

interface OptionField {
  name: string;
  kind: OptionKind;
  /** Of a choice. */
  choices?: readonly string[];
  /** What holds where nothing is said. */
  usual?: unknown;
}

/** A field with what it has. */
interface FilledField extends OptionField {
  /** As text; of a switch `true` or an empty text. A secret has none. */
  value: string;
  /** Of a secret: whether there is one, which stays where nothing is typed. */
  isSet: boolean;
}

type Schema = z.core.$ZodType;
type Options = Readonly<Record<string, unknown>>;

/** What is edited in a place of its own, or is what an import has left. */
const ELSEWHERE = new Set(['scripts', 'customScripts', 'oidc_metadata']);

/** Texts of several lines. */
const LONG = new Set([
  'metadataXml',
  'signingCert',
  'cert',
  'requestTemplate',
  'LDAP_CA',
  'fedMetadataXml',
  'template',
]);
/** Those that no page shows, as they are stored sealed; JSON but for the texts. */
const SECRETS: ReadonlySet<string> = new Set(connectionSecrets.map((path) => path.split('.')[1] ?? ''));

/** Those that come first, in this order, where a strategy has them. */
const FIRST = [
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

/** Options that messages explain: `console.connections.help.<name>`. */
const WITH_HELP: ReadonlySet<string> = new Set([
  ...FIRST,
  ...['non_persistent_attrs', 'upstream_params', 'entityId', 'signSAMLRequest', 'fieldsMap', 'attribute_map'],
  ...['enabledDatabaseCustomization', 'configuration', 'LDAP_STARTTLS', 'LDAP_CA', 'GROUPS', 'customHeaders'],
]);

/** The fields of a strategy's options, those that most connections need first. */
export function fieldsOf(strategy: string): { main: OptionField[]; further: OptionField[] } {
  const shape = shapeOf(strategyRecord(strategy)?.options);
  const all = Object.entries(shape).flatMap(([name, schema]) =>
    ELSEWHERE.has(name) ? [] : [fieldOf(name, schema)],
  );
  const main = FIRST.flatMap((name) => all.find((one) => one.name === name) ?? []);
  return { main, further: all.filter((one) => !main.includes(one)) };
}

/** The texts of a connection's secrets. */
export function secretsIn(options: Options): string[] {
  return Object.entries(options).flatMap(([name, value]) => (SECRETS.has(name) ? textsIn(value) : []));
}

/** A field with what the options have. */
function filled(field: OptionField, options: Options): FilledField {
  const value = options[field.name];
  const isSet = value !== undefined && value !== null && value !== '';
  return { ...field, isSet, value: field.kind === 'secret' ? '' : textOf(field, value) };
}

/** What a form has said that could not be taken. */
interface Refused {
  typed?: Readonly<Record<string, string>> | undefined;
  /** By the names of fields: those that cannot be read. */
  faults?: Readonly<Record<string, FormFault>> | undefined;
  /** What the Management API says of the options; it names the one it means. */
  fault?: FormFault | undefined;
}

/** The fields of a form, with what the options have, or with what was typed where that was refused. */
export function filledFields(
  strategy: string,
  options: Options,
  { typed, faults = {}, fault }: Refused = {},
) {
  const shown = (field: OptionField) => {
    const { name } = field;
    const one = filled(field, options);
    const value = typed === undefined || one.kind === 'secret' ? one.value : (typed[name] ?? '');
    const own = faults[name] ?? faultIn(fault, `options.${name}`);
    return { ...one, value, hasHelp: WITH_HELP.has(name), ...(own && { fault: own }) };
  };
  const { main, further } = fieldsOf(strategy);
  return { main: main.map(shown), further: further.map(shown) };
}

/** The first of them with which something is wrong. */
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
 * The options with what a form says. What is as it was shown is not touched, and a secret that nothing was typed for stays.
 * @param typed by the names of options; one that is not there is not of the form.
 * @returns beside them what is wrong with fields that cannot be read, by their names.
 */
export function withTyped(
  strategy: string,
  before: Options,
  typed: Readonly<Record<string, string>>,
): { options: Record<string, unknown>; faults: Record<string, FormFault> } {
  const { main, further } = fieldsOf(strategy);
  const options: Record<string, unknown> = { ...before };
  const faults: Record<string, FormFault> = {};
  for (const field of [...main, ...further]) {
    const { [field.name]: sent } = typed;
    if (sent === undefined) continue;
    const text = withoutReturns(sent);
    if (text.trim() === filled(field, before).value.trim()) continue;
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

/** @throws Error for what is no JSON. */
function readField({ name, kind }: OptionField, text: string): unknown {
  if (kind === 'switch') return text === 'true';
  if (text.trim() === '') return undefined;
  // What is no number is sent as it is: the API says what is wrong with it.
  if (kind === 'number') return Number.isFinite(Number(text)) ? Number(text) : text;
  if (kind === 'json') return JSON.parse(text);
  if (kind === 'secret' && JSON_SECRETS.has(name)) return JSON.parse(text);
  if (kind === 'list') return linesOf(text);
  return kind === 'long' ? text : text.trim();
}

/** Of the secrets those that are no texts. */
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

function fieldOf(name: string, schema: Schema): OptionField {
  const { inner, usual } = unwrapped(schema);
  const choices = choicesOf(inner);
  const kind = SECRETS.has(name) ? 'secret' : kindOf(name, inner);
  return {
    name,
    kind,
    ...(kind === 'choice' && choices !== undefined && { choices }),
    ...(usual !== undefined && typeof usual !== 'object' && { usual }),
  };
}

/** What is inside of `optional`, `default` and the like, and the default. */
function unwrapped(schema: Schema, usual?: unknown): { inner: Schema; usual: unknown } {
  const def = defOf(schema);
  if (def.type === 'pipe') {
    const { in: first, out } = def;
    return unwrapped(first !== undefined && typeOf(first) !== 'transform' ? first : (out ?? schema), usual);
  }
  if (def.innerType === undefined) return { inner: schema, usual };
  const own = def.type === 'default' || def.type === 'prefault' ? def.defaultValue : undefined;
  return unwrapped(def.innerType, usual ?? own);
}

const typeOf = (schema: Schema): string => schema._zod.def.type;

/** What zod has of a schema: what is there depends on its type. */
interface SchemaDef {
  type: string;
  /** Of `optional`, `default` and the like. */
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

// The types of zod have no schema of any kind with what each kind has.
const defOf = (schema: Schema) => schema._zod.def as SchemaDef;

function shapeOf(schema: Schema | undefined): Record<string, Schema> {
  if (schema === undefined) return {};
  const { inner } = unwrapped(schema);
  return defOf(inner).shape ?? {};
}

function kindOf(name: string, schema: Schema): OptionKind {
  const type = typeOf(schema);
  if (LONG.has(name)) return 'long';
  if (type === 'string' || type === 'literal') return 'text';
  if (type === 'number') return 'number';
  if (type === 'boolean') return 'switch';
  if (type === 'enum') return 'choice';
  const { element, options } = defOf(schema);
  if (element !== undefined) return isText(element) ? 'list' : 'json';
  if (options === undefined) return 'json';
  const kinds = options.map((one) => kindOf('', unwrapped(one).inner));
  if (kinds.includes('switch')) return 'switch';
  if (kinds.includes('json')) return 'json';
  return kinds.includes('list') ? 'list' : 'text';
}

const isText = (schema: Schema) => ['string', 'enum', 'pipe'].includes(typeOf(schema));

function choicesOf(schema: Schema): string[] | undefined {
  const { entries } = defOf(schema);
  return entries && Object.values(entries);
}
