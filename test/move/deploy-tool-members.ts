// The members that tenants of the deploy tool may have: by its own schemas, and by the types of the client that it is made with.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const require = createRequire(import.meta.url);

interface JsonSchema {
  properties?: Record<string, JsonSchema>;
  items?: JsonSchema | JsonSchema[];
  oneOf?: JsonSchema[];
  anyOf?: JsonSchema[];
  allOf?: JsonSchema[];
  additionalProperties?: JsonSchema | boolean;
}

/** Returns the paths of all members in the schemas of the deploy tool's handlers, by section; lists have no step of their own. */
export function schemaMembers(): string[][] {
  // Loaded first, because the handlers import each other in a circle.
  require('auth0-deploy-cli');
  const { default: handlers } = require('auth0-deploy-cli/lib/tools/auth0/handlers/index.js') as {
    default: Record<string, { schema?: JsonSchema; default?: { schema?: JsonSchema } }>;
  };
  return Object.entries(handlers).flatMap(([section, handler]) => {
    const schema = handler.schema ?? handler.default?.schema;
    return schema === undefined ? [] : membersOf(schema, [section]);
  });
}

function membersOf(schema: JsonSchema, path: string[]): string[][] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties = {}, items = [], oneOf = [], anyOf = [], allOf = [] } = schema;
  // Texts and parts of pages have a member for each of a hundred screens in eighty languages.
  const isTexts = path[0] === 'prompts' && path.length === 2;
  const own = isTexts
    ? []
    : Object.entries(properties).flatMap(([name, inner]) => [
        [...path, name],
        ...membersOf(inner, [...path, name]),
      ]);
  return [...own, ...[items, oneOf, anyOf, allOf].flat().flatMap((inner) => membersOf(inner, path))];
}

/** The types that describe a section, or a part of one, in the client of the Management API. */
const TYPES: readonly (readonly [type: string, ...path: string[]])[] = [
  ['Client', 'clients'],
  ['GetTenantSettingsResponseContent', 'tenant'],
  ['ResourceServer', 'resourceServers'],
  ['ConnectionPropertiesOptions', 'databases', 'options'],
  ...[
    'Oidc',
    'Okta',
    'Saml',
    'AzureAd',
    'Adfs',
    'Ad',
    'GoogleApps',
    'GoogleOAuth2',
    'Email',
    'Sms',
    'Apple',
    'OAuth2',
    'Facebook',
  ].map((name) => [`ConnectionOptions${name}`, 'connections', 'options'] as const),
];

interface Interface {
  bases: string[];
  members: [name: string, type: string][];
}

/** Returns the paths of all members in those types. */
export function clientMembers(): string[][] {
  const file = require
    .resolve('auth0-deploy-cli/package.json')
    .replace('package.json', 'node_modules/auth0/dist/cjs/management/api/types/types.d.ts');
  const text = readFileSync(file, 'utf8').replaceAll(/\/\*\*[\s\S]*?\*\//g, '');
  const interfaces = new Map<string, Interface>();
  for (const [, name = '', bases = '', body = ''] of text.matchAll(
    /^export interface (\w+)(?: extends ([^{]+))? \{\n([\s\S]*?)^\}/gm,
  )) {
    const members = [...body.matchAll(/^ {4}"?([\w$-]+)"?\??: (.*);$/gm)].map(
      ([, member = '', type = '']): [string, string] => [member, type],
    );
    interfaces.set(name, { bases: namesIn(bases), members });
  }
  const aliases = new Map(
    [...text.matchAll(/^export type (\w+) = ([^;]*);/gm)].map(([, name = '', type = '']) => [
      name,
      namesIn(type),
    ]),
  );
  const of = (name: string, seen: readonly string[]): [string, string][] => {
    if (seen.includes(name)) return [];
    const found = interfaces.get(name);
    const others = found?.bases ?? aliases.get(name) ?? [];
    return [...others.flatMap((other) => of(other, [...seen, name])), ...(found?.members ?? [])];
  };
  const walk = (name: string, path: string[], seen: readonly string[]): string[][] =>
    of(name, []).flatMap(([member, type]) => {
      const inner = namesIn(type).filter((other) => !seen.includes(other));
      return [
        [...path, member],
        ...inner.flatMap((other) => walk(other, [...path, member], [...seen, other])),
      ];
    });
  return TYPES.flatMap(([type, ...path]) => {
    if (of(type, []).length === 0) throw new Error(`the client has no type ${type}`);
    return walk(type, path, [type]);
  });
}

const namesIn = (type: string): string[] =>
  [...type.matchAll(/Management\.(\w+)/g)].map(([, name = '']) => name);
