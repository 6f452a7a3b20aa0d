// Says of each object of an export what becomes of it here.
import { placed } from '../tenant/source.ts';
import { pathText } from '../tenant/variables.ts';
import { type TenantExport, unsetVariables, withMarks } from './export.ts';
import { type Need, needsOf } from './needs.ts';
import { applicationRules } from './verdicts/application-verdicts.ts';
import { connectionRules } from './verdicts/connection-verdicts.ts';
import { objectStatements } from './verdicts/object-verdicts.ts';
import { documentRules, tenantRules } from './verdicts/tenant-verdicts.ts';
import {
  type Item,
  type RuleBook,
  ruleAt,
  ruleBook,
  type Statement,
  statementsOf,
  VERDICTS,
  type Verdict,
} from './verdicts/verdict.ts';

export const RULES: RuleBook = ruleBook(applicationRules, connectionRules, tenantRules, documentRules);

/** A statement with its place in the export. */
export interface PlacedStatement {
  verdict: Verdict;
  says: string;
  /** The page of the documents with the reason, below `docs/`. */
  decision?: string;
  /** The path of the member, for people: `clients[0].jwks_uri (tenant.yaml:12)`. */
  at: string;
}

export interface AssessedObject {
  section: string;
  /** What it is, for people. */
  kind: string;
  name: string;
  verdict: Verdict;
  statements: PlacedStatement[];
  needs: Need[];
}

/** What an object of a section is called, in the order of the report. */
const KINDS: Readonly<Record<string, string>> = {
  tenant: 'tenant settings',
  clients: 'application',
  databases: 'database',
  connections: 'connection',
  organizations: 'organization',
  resourceServers: 'API',
  clientGrants: 'client grant',
  roles: 'role',
  actions: 'Action',
  actionModules: 'module of Actions',
  triggers: 'trigger',
  rules: 'rule',
  rulesConfigs: 'variable of rules',
  hooks: 'hook',
  tokenExchangeProfiles: 'token exchange profile',
  guardianFactors: 'second factor',
  guardianFactorProviders: 'provider of a second factor',
  guardianFactorTemplates: 'message of a second factor',
  guardianPhoneFactorSelectedProvider: 'provider of codes by phone',
  guardianPhoneFactorMessageTypes: 'kinds of codes by phone',
  guardianPolicies: 'policy of second factors',
  guardianSettings: 'settings of second factors',
  attackProtection: 'attack protection',
  emailProvider: 'e-mail provider',
  emailTemplates: 'e-mail',
  phoneProviders: 'phone provider',
  phoneTemplates: 'text message',
  branding: 'branding',
  themes: 'theme',
  pages: 'page',
  prompts: 'prompts',
  customDomains: 'custom domain',
  logStreams: 'log stream',
  eventStreams: 'event stream',
  networkACLs: 'network list',
  forms: 'form',
  flows: 'flow',
  flowVaultConnections: 'connection of flows',
  selfServiceProfiles: 'self-service profile',
  connectionProfiles: 'connection profile',
  userAttributeProfiles: 'user attribute profile',
  rateLimitPolicies: 'rate limit policy',
  riskAssessment: 'risk assessment',
  supplementalSignals: 'supplemental signals',
  migrations: 'older behaviours',
};

/** Sections of one object with a part for each of its members. */
const BY_MEMBER: readonly string[] = ['attackProtection', 'triggers'];

/** Sections that say what of the tenant is not managed, as the deploy tool's configuration does. */
const NO_PARTS: readonly string[] = ['unmanaged', 'exclude', 'include'];

/** The members that an object is called by. */
const NAMES = [
  'name',
  'template',
  'key',
  'domain',
  'identifier',
  'displayName',
  'description',
  'type',
  'provider',
  'consumer_selector',
];

/** Returns an assessment of each object of an export, in the order of {@link KINDS}. */
export function assess({ sections, placeOf }: TenantExport): AssessedObject[] {
  return statedObjects(sections).map(({ section, name, path, item, statements }) => {
    const isIdle = placesWithoutEffect(sections, statements);
    const needs = needsOf(section, item, path, name, sections)
      .filter((need) => !isIdle(need.path))
      .map((need) => ({ ...need, at: placed(pathText(need.path), placeOf(need.path)) }));
    const found = new Set<Verdict>(statements.map(({ verdict }) => verdict));
    if (needs.length > 0) found.add('needs a value');
    return {
      section,
      kind: KINDS[section] ?? section,
      name,
      verdict: VERDICTS.find((verdict) => found.has(verdict)) ?? 'in force',
      statements: statements.map(({ path: at, ...said }) => ({
        ...said,
        at: placed(pathText(at), placeOf(at)),
      })),
      needs,
    };
  });
}

/** Each object of an export with what is said of it and its members. */
function statedObjects(sections: TenantExport['sections']) {
  const order = Object.keys(KINDS);
  const rank = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  return Object.entries(sections)
    .filter(([section]) => !NO_PARTS.includes(section))
    .sort(([a], [b]) => rank(a) - rank(b))
    .flatMap(([section, value]) => objectsIn(section, value))
    .map(({ section, name, value, path }) => {
      const item = (typeof value === 'object' && value !== null ? value : {}) as Item;
      const own = objectStatements(section, item, name, sections).map((said) => ({
        ...said,
        path: [...path, ...(said.path ?? [])],
      }));
      const statements: Statement[] = [
        ...own,
        ...sectionStatement(section, value, path, item),
        ...(isKnown(section) ? statementsOf(RULES, value, path, item) : []),
      ];
      return { section, name, path, item, statements };
    });
}

/**
 * Returns a function that says whether a member is, or is in, what is not in force: nothing follows from its value. A part of a
 * setting that does not exist here has none either while the setting is off.
 */
function placesWithoutEffect(
  sections: TenantExport['sections'],
  statements: readonly Statement[],
): (path: readonly string[]) => boolean {
  const idle = statements.filter(({ verdict }) => verdict === 'not in force').map(({ path }) => path);
  const startsWith = (path: readonly string[], start: readonly string[]) =>
    start.length <= path.length && start.every((step, at) => step === path[at]);
  return (path) =>
    idle.some((start) => startsWith(path, start)) ||
    path.some((_step, at) => at + 1 < path.length && isIdlePart(sections, path.slice(0, at + 1)));
}

function isIdlePart(sections: TenantExport['sections'], path: readonly string[]): boolean {
  const value = path.reduce<unknown>((of, step) => (Object(of) as Item)[step], sections);
  const steps = path.filter((step) => !/^\d+$/.test(step));
  const isPart = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isPart && steps.length > 1 && ruleAt(RULES, steps)?.verdict === 'not in force';
}

/** Returns the variables that an export lacks and of whose values nothing follows, with a sentence for each. */
export function idleVariables({ sections, placeOf }: TenantExport): { name: string; says: string }[] {
  const found = new Map<string, { path: readonly string[]; isIdle: boolean }[]>();
  const isIdle = placesWithoutEffect(
    sections,
    statedObjects(sections).flatMap(({ statements }) => statements),
  );
  const walk = (value: unknown, path: readonly string[]): void => {
    for (const name of unsetVariables(value))
      found.set(name, [...(found.get(name) ?? []), { path, isIdle: isIdle(path) }]);
    if (typeof value === 'object' && value !== null)
      for (const [key, part] of Object.entries(value)) walk(part, [...path, key]);
  };
  walk(sections, []);
  return [...found]
    .filter(([, places]) => places.every((one) => one.isIdle))
    .map(([name, places]) => {
      const at = places.map(({ path }) => placed(pathText(path), placeOf(path))).join(', ');
      return {
        name,
        says: `${at}: the environment variable ${name} is not set; it stays empty, because nothing follows from it here`,
      };
    });
}

/** Returns what the rule of a whole section, or of a part with a name of its own, says. */
function sectionStatement(section: string, value: unknown, path: readonly string[], item: Item): Statement[] {
  const rule = ruleAt(
    RULES,
    path.filter((step) => !/^\d+$/.test(step)),
  );
  if (!isKnown(section))
    return [
      {
        verdict: 'not in force',
        says: 'Gatehouse does not know this section: it is kept, and has no effect',
        path,
      },
    ];
  if (rule === undefined || rule.verdict === 'in force' || !rule.when(value, item)) return [];
  const { verdict, says, decision } = rule;
  return [{ verdict, says, path, ...(decision !== undefined && { decision }) }];
}

/** Sections that only files of this server have. */
const OWN_SECTIONS: readonly string[] = [
  'vendor_host',
  'vendor_channel',
  'users',
  'customClaims',
  'managementApi',
  'webPush',
];

const isKnown = (section: string) => KINDS[section] !== undefined || OWN_SECTIONS.includes(section);

interface FoundObject {
  section: string;
  name: string;
  value: unknown;
  path: readonly string[];
}

function objectsIn(section: string, value: unknown): FoundObject[] {
  if (value === null || value === undefined || value === '') return [];
  if (Array.isArray(value))
    return value.map((item: unknown, index) => ({
      section,
      name: nameOf(item) ?? `${section}[${index}]`,
      value: item,
      path: [section, String(index)],
    }));
  if (typeof value === 'object' && BY_MEMBER.includes(section))
    return Object.entries(value).map(([name, part]) => ({
      section,
      name,
      value: part,
      path: [section, name],
    }));
  if (typeof value === 'object' && Object.keys(value).length === 0) return [];
  return [{ section, name: nameOf(value) ?? '', value, path: [section] }];
}

/** Returns what an object is called. A client grant has no name, but an application and an API. */
function nameOf(item: unknown): string | undefined {
  if (typeof item !== 'object' || item === null)
    return typeof item === 'string' ? withMarks(item) : undefined;
  const { client_id, audience } = item as Item;
  if (typeof audience === 'string')
    return withMarks(`${String(client_id ?? 'third-party applications')} → ${audience}`);
  const named = NAMES.map((name) => (item as Item)[name]).find(
    (one) => typeof one === 'string' && one !== '',
  );
  return named === undefined ? undefined : withMarks(String(named));
}
