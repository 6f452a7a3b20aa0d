// Each property that the deploy tool's own schemas have is read in a tenant file: without a fault, and with a warning where it has
// no effect.
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { readTenant, TenantFault } from '../../src/tenant/load.ts';

/** The part of JSON Schema that the tool uses. */
interface Schema {
  type?: string | readonly string[];
  enum?: readonly unknown[];
  properties?: Readonly<Record<string, Schema>>;
  items?: Schema;
  required?: readonly string[];
  oneOf?: readonly Schema[];
  anyOf?: readonly Schema[];
  minimum?: number;
  minItems?: number;
  default?: unknown;
  format?: string;
}

const require = createRequire(import.meta.url);
const { default: schema } = require('auth0-deploy-cli/lib/tools/auth0/schema.js') as { default: Schema };

/** Not sections: the tool's own names for what it excludes, and a part of `clients` that it treats by itself. */
const NO_SECTIONS = ['exclude', 'include', 'clientAuthCredentials', 'clientAuthCredentialsPre'];

/** Values whose form the type does not say, by the end of their path. */
const VALUES: readonly [RegExp, unknown][] = [
  [
    /(callbacks|web_origins|allowed_origins|allowed_logout_urls|backchannel_logout_urls)\[\]$/,
    'https://a.example/x',
  ],
  [/(url|uri)$/i, 'https://a.example/x'],
  [/\.backchannel_logout_initiators$/, { mode: 'custom', selected_initiators: ['rp-logout'] }],
  [/^clients\[\]\.app_type$/, 'native'],
  // For third-party applications alone.
  [/^clients\[\]\.third_party_security_mode$/, undefined],
  [/^resourceServers\[\]\.token_dialect$/, 'access_token'],
  [/^resourceServers\[\]\.scopes\[\]$/, { value: 'read:x', description: 'x' }],
  [/^connections\[\]\.enabled_clients$/, []],
  [/^clientGrants\[\]\.default_for$/, null],
  [/^organizations\[\]\.connections\[\]$/, { name: 'users', assign_membership_on_login: true }],
  [/^networkACLs\[\]\.rule\.action$/, { block: true }],
  [/ipv4_cidrs\[\]$/, '192.0.2.0/24'],
  [/ipv6_cidrs\[\]$/, '2001:db8::/32'],
  [/auth0_managed\[\]$/, 'auth0.low_reputation'],
  [/\.subject_token_type$/, 'urn:example:token'],
  [/\.character_types$/, ['lowercase', 'uppercase', 'number', 'special']],
];

/** What the items of a section refer to. */
const BESIDE: Readonly<Record<string, object>> = { organizations: { databases: [{ name: 'users' }] } };

type Choice = Readonly<Record<string, unknown>>;

/** @param chosen the values of enumerations, by path; by default their first ones. */
function sampleOf(given: Schema, path: string, chosen: Choice = {}): unknown {
  const known = VALUES.find(([end]) => end.test(path));
  if (known !== undefined) return known[1];
  if (given.enum !== undefined)
    return path in chosen ? chosen[path] : given.enum.find((value) => value !== null && value !== '');
  const schemas = given.oneOf ?? given.anyOf;
  if (given.type === undefined && schemas !== undefined) return sampleOf(schemas[0] ?? {}, path, chosen);
  const types = [given.type ?? (given.properties === undefined ? 'string' : 'object')].flat();
  switch (types.find((one) => one !== 'null')) {
    case 'array':
      return [sampleOf(given.items ?? {}, `${path}[]`, chosen)];
    case 'object':
      return Object.fromEntries(
        Object.entries(given.properties ?? {}).map(([name, member]) => [
          name,
          sampleOf(member, `${path}.${name}`, chosen),
        ]),
      );
    case 'boolean':
      return true;
    case 'number':
    case 'integer':
      return Math.max(given.minimum ?? 1, 1);
    default:
      return 'x';
  }
}

/** Returns the enumerations of a schema with their values. */
function enumerations(given: Schema, path: string): { path: string; values: readonly unknown[] }[] {
  if (VALUES.some(([end]) => end.test(path))) return [];
  if (given.enum !== undefined) return [{ path, values: given.enum }];
  const first = given.type === undefined ? (given.oneOf ?? given.anyOf)?.[0] : undefined;
  return [
    ...(first === undefined ? [] : enumerations(first, path)),
    ...(given.items === undefined ? [] : enumerations(given.items, `${path}[]`)),
    ...Object.entries(given.properties ?? {}).flatMap(([name, member]) =>
      enumerations(member, `${path}.${name}`),
    ),
  ];
}

function faultsOf(document: object): readonly string[] {
  try {
    readTenant(document);
    return [];
  } catch (thrown) {
    if (thrown instanceof TenantFault) return thrown.faults;
    throw thrown;
  }
}

describe("every property of the deploy tool's schemas is read without a fault", () => {
  const sections = Object.entries(schema.properties ?? {}).filter(([name]) => !NO_SECTIONS.includes(name));

  it('which has all sections', () => {
    expect(sections.map(([name]) => name)).to.include.members([
      'clients',
      'prompts',
      'triggers',
      'eventStreams',
    ]);
  });

  for (const [section, of] of sections)
    it(`${section}, with each value of each enumeration`, () => {
      const document = (chosen: Choice) => ({ ...BESIDE[section], [section]: sampleOf(of, section, chosen) });
      expect(faultsOf(document({}))).to.deep.equal([]);
      for (const { path, values } of enumerations(of, section).slice(0, 200))
        for (const value of values.slice(0, 40))
          expect(faultsOf(document({ [path]: value })), `${path}: ${String(value)}`).to.deep.equal([]);
    });

  it('and a section or member that nothing reads is named', () => {
    const named = (document: object) => readTenant(document).report.join('\n');
    expect(named({ flows: [{ name: 'one' }] })).to.contain('flows is not known here');
    expect(named({ clients: [{ name: 'one', tides: true }] })).to.contain(
      'clients[0].tides is not known here',
    );
  });
});
