// The options of a strategy as form fields, derived from its schema.
import type { z } from 'zod';
import { strategyRecord } from '../../../records/connections.ts';
import { connectionSecrets } from '../../../records/secrets.ts';

/** The kind of a field. */
type OptionKind = 'text' | 'long' | 'secret' | 'number' | 'switch' | 'choice' | 'list' | 'json';

export interface OptionField {
  name: string;
  kind: OptionKind;
  /** The options of a choice. */
  choices?: readonly string[];
  /** The default value. */
  usual?: unknown;
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
export const SECRETS: ReadonlySet<string> = new Set(
  connectionSecrets.map((path) => path.split('.')[1] ?? ''),
);

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
export const WITH_HELP: ReadonlySet<string> = new Set([
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
    ...(usual !== undefined && typeof usual !== 'object' && { usual }),
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
