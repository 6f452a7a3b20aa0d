// A tenant in the folders of the hosted service's deploy tool: a JSON file for each application, connection and so on.
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { DeployConfig } from './deploy-config.ts';
import { isFile, isOutside, isPath, OUTSIDE } from './included-files.ts';
import { placed, readText, type Source } from './source.ts';

/** The folders with a file for each item of a section. */
export const SECTION_FOLDERS: Readonly<Record<string, string>> = {
  'action-modules': 'actionModules',
  actions: 'actions',
  clients: 'clients',
  'connection-profiles': 'connectionProfiles',
  connections: 'connections',
  'event-streams': 'eventStreams',
  'flow-vault-connections': 'flowVaultConnections',
  flows: 'flows',
  forms: 'forms',
  grants: 'clientGrants',
  'guardian/factors': 'guardianFactors',
  'guardian/providers': 'guardianFactorProviders',
  'guardian/templates': 'guardianFactorTemplates',
  hooks: 'hooks',
  'log-streams': 'logStreams',
  'network-acls': 'networkACLs',
  organizations: 'organizations',
  'phone-templates': 'phoneTemplates',
  'rate-limit-policies': 'rateLimitPolicies',
  'resource-servers': 'resourceServers',
  roles: 'roles',
  rules: 'rules',
  'rules-configs': 'rulesConfigs',
  'self-service-profiles': 'selfServiceProfiles',
  themes: 'themes',
  'token-exchange-profiles': 'tokenExchangeProfiles',
  'user-attribute-profiles': 'userAttributeProfiles',
};

/** The files with a section, or with a member of one. */
export const SECTION_FILES: Readonly<Record<string, readonly string[]>> = {
  'tenant.json': ['tenant'],
  'supplemental-signals.json': ['supplementalSignals'],
  'attack-protection/bot-detection.json': ['attackProtection', 'botDetection'],
  'attack-protection/breached-password-detection.json': ['attackProtection', 'breachedPasswordDetection'],
  'attack-protection/brute-force-protection.json': ['attackProtection', 'bruteForceProtection'],
  'attack-protection/captcha.json': ['attackProtection', 'captcha'],
  'attack-protection/suspicious-ip-throttling.json': ['attackProtection', 'suspiciousIpThrottling'],
  'branding/branding.json': ['branding'],
  'custom-domains/custom-domains.json': ['customDomains'],
  'emails/provider.json': ['emailProvider'],
  'guardian/phoneFactorMessageTypes.json': ['guardianPhoneFactorMessageTypes'],
  'guardian/phoneFactorSelectedProvider.json': ['guardianPhoneFactorSelectedProvider'],
  'guardian/policies.json': ['guardianPolicies'],
  'phone-providers/provider.json': ['phoneProviders'],
  'prompts/prompts.json': ['prompts'],
  'prompts/custom-text.json': ['prompts', 'customText'],
  'prompts/partials.json': ['prompts', 'partials'],
  'risk-assessment/settings.json': ['riskAssessment'],
  'triggers/triggers.json': ['triggers'],
};

type Item = Record<string, unknown>;

interface Part {
  /** Where it is in the tenant. */
  path: readonly string[];
  file: string;
  source: Source;
}

/** @param onFile called with the path of each file before it is read. */
export function readFolder(
  folder: string,
  { values, connectionsFolder }: Pick<DeployConfig, 'values' | 'connectionsFolder'>,
  onFile: (path: string) => void,
): Source {
  const faults: string[] = [];
  const parts: Part[] = [];
  const document: Item = {};

  /** Reads a JSON file. The deploy tool replaces variables in its text, as in YAML, which JSON is a part of. */
  const read = (name: string, path: readonly string[]): unknown => {
    const file = join(folder, name);
    onFile(file);
    if (isOutside(realpathSync(folder), realpathSync(file))) {
      faults.push(`${file}: ${OUTSIDE}`);
      return undefined;
    }
    const text = readFileSync(file, 'utf8').replace(/^\t+/gm, (tabs) => ' '.repeat(tabs.length));
    const source = readText(text, values, file);
    faults.push(...source.faults);
    if (source.value !== undefined) parts.push({ path, file, source });
    return source.value;
  };
  const readList = (
    section: string,
    names: readonly string[],
    change = (item: Item, _name: string) => item,
  ) => {
    const items: Item[] = [];
    for (const name of names) {
      const item = read(name, [section, String(items.length)]);
      if (isItem(item) && Object.keys(item).length > 0) {
        items.push(change(item, name));
        continue;
      }
      if (item === undefined) continue;
      // The tool skips files with nothing in them.
      parts.pop();
      if (!isItem(item))
        faults.push(placed('it is no JSON object', { file: join(folder, name), line: undefined }));
    }
    document[section] = items;
  };

  for (const [name, section] of Object.entries(SECTION_FOLDERS)) {
    const files = filesIn(folder, section === 'connections' ? connectionsFolder : name);
    if (files !== undefined) readList(section, files);
  }
  const databases = entriesIn(folder, 'database-connections');
  if (databases !== undefined)
    readList(
      'databases',
      databases.map((name) => `${name}/database.json`).filter((name) => isFile(join(folder, name))),
      withScripts,
    );
  const mails = filesIn(folder, 'emails')?.filter((name) => basename(name) !== 'provider.json');
  if (mails !== undefined)
    readList('emailTemplates', mails, (item, name) => withPage(folder, 'body', item, name));
  const pages = filesIn(folder, 'pages');
  if (pages !== undefined) readList('pages', pages, (item, name) => withPage(folder, 'html', item, name));
  for (const [name, path] of Object.entries(SECTION_FILES)) {
    const value = isFile(join(folder, name)) ? read(name, path) : undefined;
    if (value === undefined) continue;
    const [section = '', member] = path;
    if (member === undefined) document[section] = value;
    else
      document[section] = {
        ...(document[section] as Item | undefined),
        [member]: member === 'partials' ? partialsOf(value) : value,
      };
  }
  const readMembers = (section: string, member: string, name: string) => {
    const files = filesIn(folder, name);
    if (files === undefined) return;
    const all = files.map((file, index) => read(file, [section, member, String(index)]));
    document[section] = { ...(document[section] as Item | undefined), [member]: all };
  };
  readMembers('branding', 'templates', 'branding/templates');
  readMembers('prompts', 'screenRenderers', 'prompts/screenRenderSettings');

  /** Returns the innermost file of a value. */
  const partOf = (path: readonly string[]) =>
    parts
      .filter((part) => part.path.every((step, at) => step === path[at]))
      .sort((a, b) => b.path.length - a.path.length)[0];
  return {
    value: document,
    isEmpty: parts.length === 0,
    faults,
    warnings: parts.flatMap(({ source }) => source.warnings),
    placeOf: (path) => {
      const part = partOf(path);
      return part?.source.placeOf(path.slice(part.path.length)) ?? { file: folder, line: undefined };
    },
    foldersOf: (path) => {
      const part = partOf(path);
      return part === undefined ? [folder] : [dirname(part.file), folder];
    },
  };
}

const isItem = (value: unknown): value is Item =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns a database with its scripts among its options, where files of older versions do not have them. */
function withScripts({ customScripts, ...database }: Item): Item {
  if (customScripts === undefined) return database;
  return { ...database, options: { ...(isItem(database.options) ? database.options : {}), customScripts } };
}

/** Returns partials by screen and place: in the folder they are `{ login: [{ login: [{ name, template }] }] }`. */
function partialsOf(prompts: unknown): unknown {
  if (!isItem(prompts)) return prompts;
  return Object.fromEntries(
    Object.entries(prompts).map(([prompt, screens]) => {
      const [first]: unknown[] = [screens].flat();
      const all = Object.entries(isItem(first) ? first : {}).map(([screen, places]) => [
        screen,
        Array.isArray(places)
          ? Object.fromEntries(places.filter(isItem).map(({ name, template }) => [String(name), template]))
          : places,
      ]);
      return [prompt, Object.fromEntries(all)];
    }),
  );
}

/**
 * Returns a page or a mail with the path of the HTML file of the same name, unless it names another one that is there. Pages
 * without a file are empty, as in the tool: an error page may lead to a URL instead.
 */
function withPage(folder: string, member: string, item: Item, name: string): Item {
  const { [member]: named, ...rest } = item;
  const page = name.replace(/\.json$/, '.html');
  const isThere = isFile(join(folder, page));
  if (typeof named !== 'string' || named === '')
    return isThere ? { ...rest, [member]: `./${basename(page)}` } : item;
  if (!isPath(named) || isFile(join(folder, dirname(name), named)) || isFile(join(folder, named)))
    return item;
  if (isThere) return { ...rest, [member]: `./${basename(page)}` };
  return member === 'html' ? { ...rest, html: '' } : item;
}

/** Returns the names in a folder, with it, in order; undefined if there is no such folder. */
function entriesIn(folder: string, name: string): string[] | undefined {
  const path = join(folder, name);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return undefined;
  return readdirSync(path)
    .sort()
    .map((entry) => `${name}/${entry}`);
}

const filesIn = (folder: string, name: string): string[] | undefined =>
  entriesIn(folder, name)?.filter((entry) => entry.endsWith('.json') && isFile(join(folder, entry)));
