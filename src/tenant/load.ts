// Reads the tenant file, fills in variables, and validates it. All faults are reported at once. Unknown keys are
// kept, and reported as warnings.
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { classWarnings } from '../records/authentication-classes.ts';
import { strategyRecord } from '../records/connections.ts';
import { MAX_RESET_SECONDS } from '../records/delivery.ts';
import { isSentType, streamFaults } from '../records/log-streams.ts';
import { networkAclWarnings } from '../records/network-acls.ts';
import { type TenantFile, tenantFileSchema } from '../records/tenant.ts';
import { crossFaults } from './cross-checks.ts';
import { databaseWarnings } from './database-warnings.ts';
import { readYaml, type YamlFault } from './document.ts';
import { readHtmlFiles } from './html-files.ts';
import { identifierWarnings } from './identifier-warnings.ts';
import { pageWarnings } from './pages.ts';
import { samlWarnings } from './saml-warnings.ts';
import { parseWithoutUnknown, unknownKeys, unknownKeyWarning } from './unknown-keys.ts';
import { userFaults } from './user-faults.ts';
import { fillIn } from './variables.ts';

/** A tenant file that cannot be used, with all faults: file and line if known, path, and cause. */
export class TenantFault {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    this.faults = faults;
  }
}

export interface LoadedTenant {
  tenant: TenantFile;
  /** Unknown keys, and settings that may surprise; one sentence each. */
  warnings: string[];
  /** Adds file and line to a message that begins with a path, such as `clients[0].name: …`. */
  withPlace(sentence: string): string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads a tenant file. @throws TenantFault */
export async function loadTenantFile(path: string, env: Environment): Promise<LoadedTenant> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    const cause = code === 'ENOENT' ? 'there is no such file' : message;
    throw new TenantFault([`${path} cannot be read (${cause})`]);
  }
  return parseTenant(text, env, path);
}

/**
 * Parses a tenant from YAML.
 * @param path the text's file, to which paths in it are relative. Without it no other file is read.
 * @throws TenantFault
 */
export function parseTenant(text: string, env: Environment, path?: string): LoadedTenant {
  const yamlFault = ({ line, message }: YamlFault) => placed(path, line, `not valid YAML: ${message}`);
  const read = readYaml(text);
  if ('faults' in read) throw new TenantFault(read.faults.map(yamlFault));
  const withPlace = (sentence: string) => placed(path, read.lineOf(pathOf(sentence)), sentence);
  const faults: string[] = [];
  const filled = fillIn(read.value ?? {}, env, faults);
  const complete = path === undefined ? filled : readHtmlFiles(filled, dirname(path), env, faults);
  // Validating unfilled variables would only add misleading faults.
  if (faults.length > 0) throw new TenantFault(faults.map(withPlace));
  const result = checkTenant(complete);
  if ('faults' in result) throw new TenantFault(result.faults.map(withPlace));
  const { tenant, warnings } = result;
  return { tenant, warnings: [...read.warnings.map(yamlFault), ...warnings.map(withPlace)], withPlace };
}

/** Validates a parsed tenant. @throws TenantFault */
export function readTenant(document: unknown): LoadedTenant {
  const result = checkTenant(document);
  if ('faults' in result) throw new TenantFault(result.faults);
  return { ...result, withPlace: (sentence) => sentence };
}

/** Adds the place in the form that editors and terminals link: `sentence (file:line)`. */
function placed(path: string | undefined, line: number | undefined, sentence: string): string {
  if (path === undefined) return sentence;
  return `${sentence} (${path}${line === undefined ? '' : `:${line}`})`;
}

/** Returns the path at the beginning of a message, in either notation: `clients[0].name` or `clients.0.name`. */
function pathOf(sentence: string): string[] {
  const [path = ''] = /^[^\s:]*/.exec(sentence) ?? [];
  return path.split(/[.[\]]+/).filter((step) => step !== '');
}

type CheckedTenant = { tenant: TenantFile; warnings: string[] } | { faults: string[] };

/** Returns the faults, or the tenant with its warnings. */
function checkTenant(document: unknown): CheckedTenant {
  const { result, warnings: removed } = parseWithoutUnknown(document, tenantFileSchema);
  if (!result.success) {
    return { faults: result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) };
  }
  const tenant = result.data;
  const faults = [...crossFaults(tenant), ...userFaults(tenant)];
  if (faults.length > 0) return { faults };
  const warnings = [
    ...removed,
    ...unknownKeys(tenant, tenantFileSchema),
    ...providerWarnings(tenant),
    ...lifetimeWarnings(tenant),
    ...strategyWarnings(tenant),
    ...samlWarnings(tenant),
    ...classWarnings(tenant.tenant),
    ...identifierWarnings(tenant),
    ...databaseWarnings(tenant),
    ...directoryWarnings(tenant),
    ...pageWarnings(tenant),
    ...logStreamWarnings(tenant),
    ...aclWarnings(tenant),
  ];
  return { tenant, warnings };
}

/** Returns warnings about connections that nobody can log in with: incomplete ones, and unsupported strategies. */
function strategyWarnings({ connections }: TenantFile): string[] {
  const unfinished = connections.flatMap(({ name, strategy, options }, index) =>
    (strategyRecord(strategy)?.missingOptions?.(options) ?? []).map(
      (member) => `connections[${index}].options.${member}: is missing: nobody can log in with ${name}`,
    ),
  );
  const unknown = connections
    .map(({ name, strategy }, index) => ({ name, strategy, at: `connections[${index}].strategy` }))
    .filter(({ strategy }) => strategyRecord(strategy) === undefined)
    .map(({ name, strategy, at }) => `${at}: ${strategy} is not built in: nobody can log in with ${name}`);
  return [...unfinished, ...unknown];
}

/** Returns a warning about a default directory that no password grant can use; the hosted service has more that can. */
function directoryWarnings({ tenant, connections }: TenantFile): string[] {
  const directory = connections.find(({ name }) => name === tenant.default_directory);
  if (directory === undefined || strategyRecord(directory.strategy)?.takesPasswords === true) return [];
  return [
    `tenant.default_directory: ${directory.name} checks no passwords here (${directory.strategy}): the grant password fails`,
  ];
}

/** Returns a warning about an unsupported e-mail provider. It is no fault, so that an exported tenant starts. */
function providerWarnings({ emailProvider: provider }: TenantFile): string[] {
  if (provider?.enabled !== true || provider.name === 'smtp') return [];
  return [`emailProvider: ${provider.name} is not built in: set SMTP_URL to its SMTP endpoint`];
}

/** Returns warnings about long-lived reset links; exported tenants have the hosted service's five days. */
function lifetimeWarnings({ emailTemplates = [] }: TenantFile): string[] {
  return emailTemplates.flatMap(({ template, urlLifetimeInSeconds: seconds = 0 }, index) =>
    template === 'reset_email' && seconds > MAX_RESET_SECONDS
      ? [
          `emailTemplates[${index}].urlLifetimeInSeconds: links that reset a password are good for ${MAX_RESET_SECONDS} seconds at most`,
        ]
      : [],
  );
}

/** Returns warnings about log streams of unsupported types, which are kept but not sent, and of unknown keys of others. */
function logStreamWarnings({ logStreams = [] }: TenantFile): string[] {
  return logStreams.flatMap((stream, index) => {
    const { type, name } = stream;
    const at = `logStreams[${index}]`;
    if (!isSentType(type))
      return [`${at}.type: ${String(type)} is not built in: nothing is sent to ${String(name ?? type)}`];
    return streamFaults(stream).flatMap(({ path, unknownKeys: keys }) =>
      keys.map((key) => unknownKeyWarning(`${at}.${path}.${key}`)),
    );
  });
}

/** Returns warnings about active network ACLs that apply to no request. */
function aclWarnings({ networkACLs = [] }: TenantFile): string[] {
  return networkACLs.flatMap((acl, index) =>
    networkAclWarnings(acl).map((warning) => `networkACLs[${index}]: ${warning}`),
  );
}
