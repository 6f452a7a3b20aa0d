// The configuration of the hosted service's deploy tool, `config.json` beside an export: what its texts' variables stand
// for, and what of the tenant it does not manage. Each member may also be a variable of the environment, as for the tool.
// docs/understand/decisions/operating.md#the-deploy-tools-configuration-acts-on-a-tenant-file-as-in-the-tool
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Unmanaged } from '../records/tenant/unmanaged.ts';
import { type Place, placed } from './source.ts';
import type { Environment, Values } from './variables.ts';

const names = z.array(z.string());
const properties = z.record(z.string(), names);

/** A switch; in the environment it is a text. */
const flag = z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')]);

/** The members that act here. The others say where the tenant is, how it is exported, or how the tool logs. */
const configSchema = z.object({
  AUTH0_KEYWORD_REPLACE_MAPPINGS: z.record(z.string(), z.unknown()).optional(),
  AUTH0_EXCLUDED: names.optional(),
  AUTH0_INCLUDED_ONLY: names.min(1, 'must name at least one section').optional(),
  AUTH0_EXCLUDED_RULES: names.optional(),
  AUTH0_EXCLUDED_CLIENTS: names.optional(),
  AUTH0_EXCLUDED_DATABASES: names.optional(),
  AUTH0_EXCLUDED_CONNECTIONS: names.optional(),
  AUTH0_EXCLUDED_RESOURCE_SERVERS: names.optional(),
  AUTH0_INCLUDED_CONNECTIONS: names.optional(),
  AUTH0_EXCLUDE_THIRD_PARTY_CLIENTS: flag.optional(),
  AUTH0_ALLOW_DELETE: flag.optional(),
  AUTH0_CONNECTIONS_DIRECTORY: z.string().min(1).optional(),
  EXCLUDED_PROPS: properties.optional(),
  INCLUDED_PROPS: properties.optional(),
});
type ConfigName = keyof z.output<typeof configSchema>;

const NAMES = Object.keys(configSchema.shape) as ConfigName[];

/** Which members may not be given together, as in the tool. */
const EITHER: readonly [ConfigName, ConfigName][] = [
  ['AUTH0_EXCLUDED', 'AUTH0_INCLUDED_ONLY'],
  ['AUTH0_EXCLUDED_CONNECTIONS', 'AUTH0_INCLUDED_CONNECTIONS'],
];

export interface DeployConfig {
  values: Values;
  /** What of it has no effect, with its place. */
  warnings: string[];
  /** The folder of connections in the folders of the tool. */
  connectionsFolder: string;
  /**
   * @param document the tenant, by section. The tool's own sections `exclude` and `include` say what its configuration may.
   * @param all the sections that there are.
   * @returns what is not managed; undefined if everything is.
   */
  unmanaged(document: unknown, all: readonly string[]): Unmanaged | undefined;
}

/** The variable that names the configuration of the deploy tool. */
const FILE = 'TENANT_CONFIG';

/** @param onFile called with the path of the configuration before it is read. */
export function readDeployConfig(
  env: Environment,
  onFile: (path: string) => void,
): { config: DeployConfig } | { faults: string[] } {
  const path = env[FILE] || undefined;
  const place = { file: path, line: undefined };
  const faults: string[] = [];
  const { given, warnings } = withoutTextMappings(
    path === undefined ? {} : readObject(path, onFile, faults),
    place,
  );
  const fromEnvironment = Object.fromEntries(
    NAMES.flatMap((name) => (env[name] ? [[name, parsed(env[name])] as const] : [])),
  );
  const { success, data, error } = configSchema.safeParse({ ...given, ...fromEnvironment });
  for (const { path: at, message } of error?.issues ?? [])
    faults.push(
      at[0] !== undefined && at[0] in fromEnvironment
        ? `${at.join('.')}: ${message}`
        : placed(`${at.join('.')}: ${message}`, place),
    );
  for (const [one, other] of EITHER)
    if (isGiven(data?.[one]) && isGiven(data?.[other]))
      faults.push(placed(`${one}: cannot be given together with ${other}`, place));
  for (const [section, members] of Object.entries(data?.EXCLUDED_PROPS ?? {}))
    for (const member of members)
      if (data?.INCLUDED_PROPS?.[section]?.includes(member) === true)
        faults.push(placed(`EXCLUDED_PROPS.${section}: ${member} is also in INCLUDED_PROPS`, place));
  if (!success || faults.length > 0) return { faults };
  return {
    config: {
      values: { env, mappings: new Map(Object.entries(data.AUTH0_KEYWORD_REPLACE_MAPPINGS ?? {})) },
      warnings,
      connectionsFolder: data.AUTH0_CONNECTIONS_DIRECTORY ?? 'connections',
      unmanaged: (document, all) => unmanagedOf(data, { isWhole: path !== undefined, document, all }),
    },
  };
}

/**
 * Returns the members of a configuration without a text in place of the mappings, such as the path of a file with them: the
 * deploy tool reads no file there, and goes on.
 */
function withoutTextMappings(given: object, place: Place): { given: object; warnings: string[] } {
  const name = 'AUTH0_KEYWORD_REPLACE_MAPPINGS' satisfies ConfigName;
  const { [name]: mappings, ...others } = given as Readonly<Record<string, unknown>>;
  if (typeof mappings !== 'string') return { given, warnings: [] };
  const says = `${name}: a text has no mappings, also where it is the path of a file: none is read, as in the deploy tool`;
  return { given: others, warnings: [placed(says, place)] };
}

const isGiven = (value: unknown): boolean => Array.isArray(value) && value.length > 0;

/** Returns a variable of the environment as JSON, if it is JSON; else as it is. */
function parsed(value: string | undefined): unknown {
  try {
    return JSON.parse(value ?? '');
  } catch {
    return value;
  }
}

function readObject(path: string, onFile: (path: string) => void, faults: string[]): object {
  onFile(path);
  const fault = (cause: string) => {
    faults.push(`${FILE}: ${path} cannot be read (${cause})`);
    return {};
  };
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? value
      : fault('it is no JSON object');
  } catch (thrown) {
    // The message of a syntax error quotes the text, which may contain secrets.
    if (thrown instanceof SyntaxError) return fault('it is no JSON');
    const { code } = thrown as NodeJS.ErrnoException;
    return fault(code === 'ENOENT' ? 'there is no such file' : (code ?? 'it cannot be opened'));
  }
}

/** The sections that are no part of the tenant. */
const OWN = ['exclude', 'include', 'unmanaged'];

/** What a tenant file itself excludes and includes, in the tool's own sections. */
const ownSchema = z.object({
  exclude: z
    .object({
      rules: names,
      clients: names,
      databases: names,
      connections: names,
      resourceServers: names,
    })
    .partial()
    .optional(),
  include: z.object({ connections: names }).partial().optional(),
});

/**
 * @param isWhole whether there is a configuration of the tool, and not only some of its names in the environment. Then
 *   also sections that the file lacks are not managed, and nothing is deleted unless AUTH0_ALLOW_DELETE says so.
 */
function unmanagedOf(
  data: z.output<typeof configSchema>,
  { isWhole, document, all }: { isWhole: boolean; document: unknown; all: readonly string[] },
): Unmanaged | undefined {
  const declared = Object.keys(Object(document) as object);
  const { exclude, include } = ownSchema.safeParse(document).data ?? {};
  const included = include?.connections ?? data.AUTH0_INCLUDED_CONNECTIONS;
  const isExcluded = (section: string) =>
    data.AUTH0_EXCLUDED?.includes(section) === true ||
    data.AUTH0_INCLUDED_ONLY?.includes(section) === false ||
    (isWhole && !declared.includes(section));
  const unmanaged: Unmanaged = {
    sections: [...new Set([...all, ...declared])].filter((name) => isExcluded(name) && !OWN.includes(name)),
    clients: exclude?.clients ?? data.AUTH0_EXCLUDED_CLIENTS ?? [],
    databases: exclude?.databases ?? data.AUTH0_EXCLUDED_DATABASES ?? [],
    connections: exclude?.connections ?? data.AUTH0_EXCLUDED_CONNECTIONS ?? [],
    ...(isGiven(included) && { other_connections_than: included }),
    resourceServers: exclude?.resourceServers ?? data.AUTH0_EXCLUDED_RESOURCE_SERVERS ?? [],
    rules: exclude?.rules ?? data.AUTH0_EXCLUDED_RULES ?? [],
    third_party_clients: data.AUTH0_EXCLUDE_THIRD_PARTY_CLIENTS ?? false,
    members: data.EXCLUDED_PROPS ?? {},
    removals: isWhole && data.AUTH0_ALLOW_DELETE !== true,
  };
  const isEmpty = Object.values(unmanaged).every(
    (value) => value === false || Object.keys(Object(value)).length === 0,
  );
  return isEmpty ? undefined : unmanaged;
}
