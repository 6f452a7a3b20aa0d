// Reads the tenant file, fills in variables, and validates it. All faults are reported at once. Unknown keys are
// kept, and reported as warnings.
import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { lookupEmail, normalizeEmail } from '../records/base/email.ts';
import { strategyRecord } from '../records/connections/connections.ts';
import { bindingWarnings, type SamlpAddon } from '../records/connections/samlp.ts';
import { MAX_PASSWORD_LENGTH, normalizePassword } from '../records/database-options.ts';
import { MAX_RESET_SECONDS, mailProviderOf } from '../records/tenant/delivery.ts';
import { sinkOf, streamFaults } from '../records/tenant/log-streams.ts';
import { networkAclWarnings } from '../records/tenant/network-acls.ts';
import { type TenantFile, tenantFileSchema } from '../records/tenant/tenant.ts';
import { unmanagedSchema } from '../records/tenant/unmanaged.ts';
import { classWarnings } from '../records/users/authentication-classes.ts';
import { grantsOfEntries } from '../records/users/organization-grants.ts';
import { crossFaults } from './cross-checks.ts';
import { databaseWarnings } from './database-warnings.ts';
import { type DeployConfig, readDeployConfig } from './deploy-config.ts';
import { deprecations } from './deprecations.ts';
import { type Finding, findingsOf, reportOf, sentenceOf } from './findings.ts';
import { readGatehouseFile } from './gatehouse-file.ts';
import { identifierWarnings } from './identifier-warnings.ts';
import { readIncludedFiles, withJsonFiles } from './included-files.ts';
import { keptFindings } from './kept-findings.ts';
import { localeWarnings } from './languages.ts';
import { withoutMasks } from './masked.ts';
import { clientIdOf, directoryOf, withClientIds } from './names.ts';
import { pageFindings } from './pages.ts';
import { placed, readText, type Source } from './source.ts';
import { readFolder } from './tenant-folder.ts';
import { withoutItems, withoutSections } from './unmanaged.ts';
import { urlWarnings } from './url-warnings.ts';
import { type Environment, fillIn, isSet, type Values, valuesOf } from './variables.ts';

/** A tenant file that cannot be used, with all faults: file and line if known, path, and cause. */
export class TenantFault {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    this.faults = faults;
  }
}

export interface LoadedTenant {
  tenant: TenantFile;
  /** Whether the text had nothing in it but comments. */
  isEmpty: boolean;
  /** Unknown keys, and settings that may surprise; one sentence each. */
  warnings: string[];
  /** The same for people: what matters most comes first, and one line has all of a kind. */
  report: string[];
  /** Adds file and line to a message that begins with a path, such as `clients[0].name: …`. */
  withPlace(sentence: string): string;
}

/**
 * Loads a tenant from a file or a folder, with the deploy tool's configuration where TENANT_CONFIG names it.
 * @param onFile called with the path of each file before it is read: this one, and those that it names.
 * @throws TenantFault
 */
export async function loadTenantFile(
  path: string,
  env: Environment,
  onFile: (path: string) => void = () => undefined,
): Promise<LoadedTenant> {
  const { source, config } = await readSource(path, configOf(env, onFile), onFile);
  const loaded = tenantOf(source, config, directoryOfTenant(path), onFile);
  const { warnings } = config;
  return {
    ...loaded,
    warnings: [...warnings, ...loaded.warnings],
    report: [...warnings, ...loaded.report],
  };
}

/** What a tenant file says, before it is validated. */
export interface TenantDocument {
  /** With variables replaced, and the texts of the files that it names. */
  document: unknown;
  /** With their places. */
  faults: string[];
  placeOf: Source['placeOf'];
  /** Whether a variable has a value. */
  isSet(name: string): boolean;
}

/** Reads a tenant file as {@link loadTenantFile} does, without validating it. @throws TenantFault if there is no such file. */
export async function readTenantDocument(
  path: string,
  env: Environment,
  onFile: (path: string) => void = () => undefined,
): Promise<TenantDocument> {
  const { source, config } = await readSource(path, configOf(env, onFile), onFile);
  return documentOf(source, config, directoryOfTenant(path), onFile);
}

/** @throws TenantFault */
function configOf(env: Environment, onFile: (path: string) => void): DeployConfig {
  const read = readDeployConfig(env, onFile);
  if ('faults' in read) throw new TenantFault(read.faults);
  return read.config;
}

const isDirectory = (path: string) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/** Returns the folder of the files that a tenant file, or a folder with a tenant, may name. */
const directoryOfTenant = (path: string) => (isDirectory(path) ? path : dirname(path));

/** Reads a tenant, and joins it with what only Gatehouse knows, if there is a file of that beside it. */
async function readSource(
  path: string,
  given: DeployConfig,
  onFile: (path: string) => void,
): Promise<{ source: Source; config: DeployConfig }> {
  const place = { directory: directoryOfTenant(path), tenant: path, values: given.values };
  const own = readGatehouseFile(place, onFile);
  const config = own === undefined ? given : { ...given, values: own.values };
  const source = await readMain(path, config, onFile);
  return { source: own?.joined(source) ?? source, config };
}

async function readMain(path: string, config: DeployConfig, onFile: (path: string) => void): Promise<Source> {
  if (isDirectory(path)) return readFolder(path, config, onFile);
  onFile(path);
  try {
    return readText(await readFile(path, 'utf8'), config.values, path);
  } catch (thrown) {
    const { code, message } = thrown as NodeJS.ErrnoException;
    const cause = code === 'ENOENT' ? 'there is no such file' : message;
    throw new TenantFault([`${path} cannot be read (${cause})`]);
  }
}

/**
 * Parses a tenant from YAML.
 * @param path the text's file, beside which are the files that it names. Without it no other file is read.
 * @throws TenantFault
 */
export function parseTenant(text: string, env: Environment, path?: string): LoadedTenant {
  const values = valuesOf(env);
  const directory = path === undefined ? undefined : dirname(path);
  return tenantOf(readText(text, values, path), { values, unmanaged: () => undefined }, directory);
}

/** @param directory the folder of the files that the tenant may name; without it none is read. @throws TenantFault */
function tenantOf(
  source: Source,
  config: Pick<DeployConfig, 'values' | 'unmanaged'>,
  directory?: string,
  onFile: (path: string) => void = () => undefined,
): LoadedTenant {
  const { document, faults, kept, placeOf, warnings } = documentOf(source, config, directory, onFile);
  // Validating unfilled variables would only add misleading faults.
  if (faults.length > 0) throw new TenantFault(faults);
  const withPlace = (sentence: string) => placed(sentence, placeOf(pathOf(sentence)));
  const result = checkTenant(document);
  if ('faults' in result) throw new TenantFault(result.faults.map(withPlace));
  const findings = [...findingsOf('different', kept), ...result.findings];
  return {
    tenant: result.tenant,
    isEmpty: source.isEmpty,
    warnings: [...warnings, ...findings.map((one) => withPlace(sentenceOf(one)))],
    report: [...warnings, ...reportOf(findings, (at) => placeOf(pathOf(at)))],
    withPlace,
  };
}

/**
 * Returns what a source says once it is complete and what is not managed is taken out, its faults with their places, and
 * warnings about variables without.
 */
function documentOf(
  source: Source,
  { values, unmanaged: unmanagedOf }: { values: Values; unmanaged: DeployConfig['unmanaged'] },
  directory: string | undefined,
  onFile: (path: string) => void,
): TenantDocument & { kept: string[]; warnings: readonly string[] } {
  const whole = directory === undefined ? source : withJsonFiles(source, { directory, values, onFile });
  const unmanaged =
    unmanagedOf(whole.value, Object.keys(tenantFileSchema.shape)) ??
    unmanagedSchema.safeParse(Object(whole.value).unmanaged).data;
  const managed = withoutSections(whole, unmanaged);
  const unset: string[] = [];
  const kept: string[] = [];
  const filled = fillIn(managed.value ?? {}, values, { faults: unset, warnings: kept });
  const placedFaults = [...whole.faults, ...unset.map((one) => placed(one, whole.placeOf(pathOf(one))))];
  const { value, placeOf, foldersOf } = withoutItems({ ...managed, value: filled }, unmanaged);
  const faults: string[] = [];
  const complete = readIncludedFiles(value, {
    directory,
    foldersOf,
    values,
    faults,
    onFault: (file, { line, message }) => placedFaults.push(placed(message, { file, line })),
    onFile,
  });
  return {
    document: unmanaged === undefined ? complete : { ...(complete as object), unmanaged },
    faults: [...placedFaults, ...faults.map((one) => placed(one, placeOf(pathOf(one))))],
    kept,
    warnings: whole.warnings,
    placeOf,
    isSet: (name) => isSet(values, name),
  };
}

/** Validates a parsed tenant. @throws TenantFault */
export function readTenant(document: unknown): LoadedTenant {
  const result = checkTenant(document);
  if ('faults' in result) throw new TenantFault(result.faults);
  const { tenant, findings } = result;
  return {
    tenant,
    isEmpty: false,
    warnings: findings.map(sentenceOf),
    report: reportOf(findings, () => ({ file: undefined, line: undefined })),
    withPlace: (sentence) => sentence,
  };
}

/** Returns the path at the beginning of a message, in either notation: `clients[0].name` or `clients.0.name`. */
function pathOf(sentence: string): string[] {
  const [path = ''] = /^[^\s:]*/.exec(sentence) ?? [];
  return path.split(/[.[\]]+/).filter((step) => step !== '');
}

/** Whether a document is a user of an export, given in place of the tenant's. Applied, it would remove what there is. */
const isUser = (document: unknown): boolean => Object.hasOwn(Object(document), 'user_id');

type CheckedTenant = { tenant: TenantFile; findings: Finding[] } | { faults: string[] };

/** Returns the faults, or the tenant with its findings. */
function checkTenant(document: unknown): CheckedTenant {
  if (isUser(document)) return { faults: ['user_id: the file is an export of users, and no tenant'] };
  const { result, removed } = parseWithoutUnknown(withClientIds(withoutMasks(document)), tenantFileSchema);
  if (!result.success) {
    return { faults: result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) };
  }
  const tenant = result.data;
  const faults = [...crossFaults(tenant), ...userFaults(tenant)];
  if (faults.length > 0) return { faults };
  const deprecated = deprecations(tenant);
  const isDeprecated = ({ at }: Finding) => deprecated.some((one) => one.at === at);
  const findings = [
    ...findingsOf('unsafe', samlWarnings(tenant)),
    ...findingsOf('unsafe', identifierWarnings(tenant)),
    ...findingsOf('unsafe', databaseWarnings(tenant)),
    ...findingsOf('unsafe', aclWarnings(tenant)),
    ...findingsOf('unusable', organizationGrantWarnings(tenant)),
    ...findingsOf('unsafe', urlWarnings(tenant)),
    ...keptFindings(tenant),
    ...strategyFindings(tenant),
    ...findingsOf('unusable', directoryWarnings(tenant)),
    ...providerFindings(tenant),
    ...pageFindings(tenant),
    ...logStreamFindings(tenant),
    ...findingsOf('different', classWarnings(tenant.tenant)),
    ...findingsOf('different', lifetimeWarnings(tenant)),
    ...findingsOf('different', localeWarnings(tenant.tenant)),
    ...deprecated,
    ...[...removed, ...unknownKeys(tenant, tenantFileSchema)].filter((one) => !isDeprecated(one)),
  ];
  return { tenant, findings };
}

// docs/understand/decisions/connections.md#an-incomplete-connection-is-stored
/** Returns findings about connections that nobody can log in with: incomplete ones, and unsupported strategies. */
function strategyFindings({ connections }: TenantFile): Finding[] {
  const unfinished = connections.flatMap(({ name, strategy, options }, index) =>
    (strategyRecord(strategy)?.missingOptions?.(options) ?? []).map((member) => ({
      rank: 'unusable' as const,
      at: `connections[${index}].options.${member}`,
      says: `is missing: nobody can log in with ${name}`,
      several: 'connections lack an option, so that nobody can log in with them',
      item: `${name} without ${member}`,
    })),
  );
  const unknown = connections
    .map(({ name, strategy }, index) => ({ name, strategy, at: `connections[${index}].strategy` }))
    .filter(({ strategy }) => strategyRecord(strategy) === undefined)
    .map(({ name, strategy, at }) => ({
      rank: 'unusable' as const,
      at,
      says: `${strategy} is not built in: nobody can log in with ${name}`,
      several: 'connections are of types that are not built in, so that nobody can log in with them',
      item: `${name}: ${strategy}`,
    }));
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

/** Returns a finding about an unsupported e-mail provider. It is no fault, so that an exported tenant starts. */
function providerFindings({ emailProvider: provider }: TenantFile): Finding[] {
  if (provider?.enabled !== true || mailProviderOf(provider.name).name === provider.name) return [];
  const says = `${provider.name} is not built in: set SMTP_URL to its SMTP endpoint`;
  return [{ rank: 'unusable', at: 'emailProvider', says }];
}

// docs/understand/decisions/passwords-protection.md#reset-links-are-valid-for-four-hours
/** Returns warnings about long-lived reset links; exported tenants have the hosted service's five days. */
function lifetimeWarnings({ emailTemplates }: TenantFile): string[] {
  return emailTemplates.flatMap(({ template, urlLifetimeInSeconds: seconds = 0 }, index) =>
    template === 'reset_email' && seconds > MAX_RESET_SECONDS
      ? [
          `emailTemplates[${index}].urlLifetimeInSeconds: links that reset a password are good for ${MAX_RESET_SECONDS} seconds at most`,
        ]
      : [],
  );
}

/** Returns findings about log streams of unsupported types, which are kept but not sent, and of unknown keys of others. */
function logStreamFindings({ logStreams = [] }: TenantFile): Finding[] {
  return logStreams.flatMap((stream, index): Finding[] => {
    const { type, name } = stream;
    const at = `logStreams[${index}]`;
    if (sinkOf(type) === undefined)
      return [
        {
          rank: 'unusable',
          at: `${at}.type`,
          says: `${String(type)} is not built in: nothing is sent to ${String(name ?? type)}`,
          several: 'log streams are of types that are not built in, so that nothing is sent to them',
          item: `${String(name ?? type)}: ${String(type)}`,
        },
      ];
    return streamFaults(stream).flatMap(({ path, unknownKeys: keys }) =>
      keys.map((key) => ({ ...KEPT, at: `${at}.${path}.${key}` })),
    );
  });
}

/** Returns warnings about active network ACLs that apply to no request. */
function aclWarnings({ networkACLs = [] }: TenantFile): string[] {
  return networkACLs.flatMap((acl, index) =>
    networkAclWarnings(acl).map((warning) => `networkACLs[${index}]: ${warning}`),
  );
}

/** Returns warnings about client grants of organizations that the file does not name, so that they do not get them. */
function organizationGrantWarnings({
  organizations,
  clients,
  clientGrants,
  unmanaged,
}: TenantFile): string[] {
  // The store may have those that the file does not manage.
  if (unmanaged !== undefined) return [];
  const clientId = clientIdOf({ clients });
  const grants = clientGrants.map((grant) => ({
    ...grant,
    client_id: grant.client_id && clientId(grant.client_id),
  }));
  return organizations.flatMap(({ client_grants: entries = [] }, at) =>
    grantsOfEntries(entries, grants, clientId).unclear.map(
      ({ index, says }) => `organizations[${at}].client_grants[${index}]: ${says}`,
    ),
  );
}

// Faults of development users that could not be created or could never log in.
// docs/understand/decisions/operating.md#a-development-user-who-could-never-log-in-is-refused

function userFaults(file: TenantFile): string[] {
  const { users } = file;
  const taken = new Set<string>();
  const customDatabases = new Set(
    file.databases
      .filter(({ options }) => options.enabledDatabaseCustomization === true && options.import_mode !== true)
      .map(({ name }) => name),
  );
  return users.flatMap((user, index) => {
    const { email, password, username } = user;
    const faults: string[] = [];
    const directory = directoryOf(file, user);
    if (customDatabases.has(directory))
      faults.push(`connection: the users of ${directory} are kept elsewhere`);
    if (normalizeEmail(email) === undefined) faults.push(`email: ${email} is no e-mail address`);
    // Logins reject longer passwords without hashing them.
    if (Buffer.byteLength(normalizePassword(password)) > MAX_PASSWORD_LENGTH) {
      faults.push(`password: more than ${MAX_PASSWORD_LENGTH} bytes of UTF-8, which no login accepts`);
    }
    if (!password.isWellFormed()) faults.push('password: half of a surrogate pair, which no login can send');
    if (username !== undefined) {
      const name = `${username.trim().toLowerCase()} in ${directory}`;
      if (username.trim() === '') faults.push('username: must not be empty');
      // Such a username would match another user's e-mail address at login.
      if (lookupEmail(username) !== undefined) faults.push(`username: ${username} is an e-mail address`);
      if (taken.has(name)) faults.push(`username: ${name} is there twice`);
      taken.add(name);
    }
    return faults.map((fault) => `users[${index}].${fault}`);
  });
}

// Warnings about valid but risky SAML addons.

/** Returns a warning for each setting that trusts more than needed, or is ambiguous. */
function samlWarnings({ clients }: Pick<TenantFile, 'clients'>): string[] {
  const providers = clients.flatMap(({ addons, name }, index) =>
    addons?.samlp === undefined ? [] : [{ name, addon: addons.samlp, at: `clients[${index}].addons.samlp` }],
  );
  return providers.flatMap((provider) => {
    const others = providers.filter((other) => other !== provider);
    const bindings = bindingWarnings(provider.name, provider.addon).map(
      (warning) => `${provider.at}.binding: ${warning}`,
    );
    return [...trustWarnings(provider), ...bindings, ...audienceWarnings(provider, others)];
  });
}

interface Provider {
  name: string;
  addon: SamlpAddon;
  /** Its path in the file. */
  at: string;
}

function trustWarnings({ name, addon, at }: Provider): string[] {
  if (addon.allowUnverifiedIdentifiers !== true) return [];
  return [
    `${at}.allowUnverifiedIdentifiers: ${name} is told addresses that nobody proved: whoever signs up with somebody else's is taken for them there`,
  ];
}

function audienceWarnings({ name, addon, at }: Provider, others: readonly Provider[]): string[] {
  if (others.length === 0) return [];
  if (addon.audience === undefined) {
    return [
      `${at}.audience is not set: requests of ${name} are taken only if their Issuer can be no other SAML application's`,
    ];
  }
  const same = others.filter((other) => other.addon.audience === addon.audience).map((other) => other.name);
  if (same.length === 0) return [];
  return [`${at}.audience: what ${name} is sent is also good for ${same.join(', ')}, which has the same`];
}

// Finds unknown keys of a tenant file at any depth, so that nobody relies on a misspelt setting.

/** What becomes of unknown keys. */
const LEFT_OUT = {
  rank: 'unknown',
  says: 'is not known here: it is left out',
  several: 'members are not known here and are left out',
} as const;
const KEPT = {
  rank: 'unknown',
  says: 'is not known here: it is kept, and has no effect',
  several: 'members are not known here; they are kept, and have no effect',
} as const;

/** Returns a finding for each key of a document that its schema does not know. */
function unknownKeys(document: unknown, schema: unknown, path = ''): Finding[] {
  const known = unwrapped(schema);
  if (known instanceof z.ZodArray && Array.isArray(document)) {
    return document.flatMap((item, index) => unknownKeys(item, known.element, `${path}[${index}]`));
  }
  if (!(known instanceof z.ZodObject) || typeof document !== 'object' || document === null) return [];
  return Object.entries(document).flatMap(([key, value]) => {
    const at = path === '' ? key : `${path}.${key}`;
    return Object.hasOwn(known.shape, key) ? unknownKeys(value, known.shape[key], at) : [{ ...KEPT, at }];
  });
}

/** Returns a schema without optional and default wrappers, and without the transform that prepares its input. */
function unwrapped(schema: unknown): unknown {
  if (schema instanceof z.ZodPipe && schema.in instanceof z.ZodTransform) return unwrapped(schema.out);
  const optional =
    schema instanceof z.ZodOptional || schema instanceof z.ZodDefault || schema instanceof z.ZodPrefault;
  return optional ? unwrapped(schema.unwrap()) : schema;
}

/**
 * The sections where an unknown key stays a fault. The members of a custom claim say to whom it is given, and without
 * a misspelt one everybody would get it; no other tool writes them.
 */
const STRICT_SECTIONS: readonly PropertyKey[] = ['customClaims'];

/**
 * Parses a document. Where its schema is one that the Management API has, too, which refuses unknown keys, they are left out
 * with a warning: in a file no unknown key is a fault, because files come from other versions and other tools, except in
 * {@link STRICT_SECTIONS}. What the schema refuses as `null`, or as an empty text in place of a list or a choice, is not
 * set: the deploy tool writes these.
 */
function parseWithoutUnknown<T>(
  document: unknown,
  schema: z.ZodType<T>,
): { result: z.ZodSafeParseResult<T>; removed: Finding[] } {
  const removedKeys: Finding[] = [];
  for (let read = document; ; ) {
    const result = schema.safeParse(read);
    const issues = (result.error?.issues ?? []).filter(
      ({ path }) => !STRICT_SECTIONS.includes(path[0] ?? ''),
    );
    const refused = issues.flatMap((issue) =>
      issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...issue.path, key]) : [],
    );
    const unset = issues.filter((issue) => isUnset(issue, read)).map(({ path }) => path);
    const known = refused.length + unset.length === 0 ? read : structuredClone(read);
    const removed = refused.filter((path) => remove(known, path));
    const cleared = unset.filter((path) => remove(known, path));
    if (removed.length + cleared.length === 0) return { result, removed: removedKeys };
    removedKeys.push(...removed.map((path) => ({ ...LEFT_OUT, at: z.core.toDotPath(path) })));
    read = known;
  }
}

/** Returns whether an issue is about a member of an object with a value that stands for none. */
function isUnset({ code, path }: z.core.$ZodIssue, document: unknown): boolean {
  const parent = valueAt(document, path.slice(0, -1));
  if (Array.isArray(parent)) return false;
  const value = valueAt(parent, path.slice(-1));
  // An empty name or secret stays a fault.
  return value === null || (value === '' && code !== 'too_small');
}

function valueAt(document: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, step) =>
      typeof value === 'object' && value !== null && Object.hasOwn(value, step)
        ? Reflect.get(value, step)
        : undefined,
    document,
  );
}

/** @returns false where there is none. */
function remove(document: unknown, [step = '', ...rest]: readonly PropertyKey[]): boolean {
  if (typeof document !== 'object' || document === null) return false;
  return rest.length === 0
    ? Object.hasOwn(document, step) && Reflect.deleteProperty(document, step)
    : remove(Reflect.get(document, step), rest);
}
