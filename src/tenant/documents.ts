// Converts the store's documents to and from sections of the tenant file: actions and triggers, rules, themes, log
// streams, custom domains, texts and partials of prompts, and page templates.

import type { Frozen } from '../records/base/record.ts';
import { ACTION_MODULE } from '../records/tenant/action-modules.ts';
import { asDraft, secretNames, withSecretValues } from '../records/tenant/actions.ts';
import { type DocumentRecord, usualMembers } from '../records/tenant/documents.ts';
import { EXCHANGE_PROFILE } from '../records/tenant/exchange-profiles.ts';
import { NETWORK_ACL } from '../records/tenant/network-acls.ts';
import { PHONE_TEMPLATE } from '../records/tenant/phone-templates.ts';
import { RULE, RULE_VARIABLE, ruleVariableId, ruleVariableKey } from '../records/tenant/rules.ts';
import type { TenantFile } from '../records/tenant/tenant.ts';
import { sha256Hex } from '../runtime/secrets.ts';

/** A document as the file declares it, without dates. */
type DeclaredDocument = Pick<DocumentRecord, 'id' | 'kind' | 'name' | 'body'>;

export function documentLabel({ id, kind, body }: Pick<DocumentRecord, 'id' | 'kind' | 'body'>): string {
  const list = LISTS.find((one) => one.kind === kind);
  return list === undefined ? id : `${list.section}.${list.label(body)}`;
}

/** Returns the part of a document that the file declares. Documents with equal parts are the same. */
export function declaredPart(document: Document | DocumentRecord): Item {
  const { kind, body } = document;
  return { kind, body: kind === 'trigger' ? { bindings: boundTo(body) } : withoutSecretDates(body) };
}

/** Returns the bindings of a trigger with the ids of their actions: one that is made anew gets another. */
function boundTo(body: Readonly<Item>): Item[] {
  const bindings = (body.bindings ?? []) as { action: { id: string } }[];
  return bindingsOf(body).map((binding, index) => ({ ...binding, action_id: bindings[index]?.action.id }));
}

/** Returns a body without the times at which its secrets were set. */
function withoutSecretDates(body: Readonly<Item>): Item {
  if (!Array.isArray(body.secrets)) return body;
  return { ...body, secrets: (body.secrets as Item[]).map(({ updated_at: _, ...secret }) => secret) };
}

export function isDeclarable(kind: string): boolean {
  const others = ['trigger', RULE_VARIABLE, EXCHANGE_PROFILE, 'custom-text', 'partials', TEMPLATE];
  return others.includes(kind) || LISTS.some((one) => one.kind === kind);
}

/** Returns whether a file declares documents of a kind. Documents of other kinds stay unchanged. */
export function declares(file: TenantFile, kind: string): boolean {
  const list = LISTS.find((one) => one.kind === kind);
  if (list !== undefined) return file[list.section] !== undefined;
  const sections: Record<string, unknown> = {
    trigger: file.triggers,
    [RULE_VARIABLE]: file.rulesConfigs,
    [EXCHANGE_PROFILE]: file.tokenExchangeProfiles,
    'custom-text': file.prompts?.customText,
    partials: file.prompts?.partials,
    [TEMPLATE]: file.branding.templates,
  };
  return sections[kind] !== undefined;
}

/**
 * @param stored the stored documents: an item without an id keeps its stored id, and dates are kept.
 * @param now ISO 8601.
 */
export function documentsOf(file: TenantFile, stored: readonly Document[], now: string): DocumentRecord[] {
  const lists = LISTS.flatMap((list) =>
    inOrder(file, list).map((item) => documentOfItem(list, item, { stored, now })),
  );
  const dated = (one: DeclaredDocument): DocumentRecord => {
    const before = stored.find(({ id }) => id === one.id);
    return { ...one, created_at: before?.created_at ?? now, updated_at: now };
  };
  const documents = [...lists, ...variablesOf(file), ...textsOf(file)].map(dated);
  const actions = documents.filter(({ kind }) => kind === 'action');
  const known = file.actions === undefined ? stored.filter(({ kind }) => kind === 'action') : actions;
  const actionDocuments = [...triggersOf(file, known, now), ...profilesOf(file, known, stored)];
  return [...documents, ...actionDocuments.map(dated)];
}

/** Returns the items of a section. Rules without an `order` run in the order of the file. */
function inOrder(file: TenantFile, { section }: ListSection): readonly Readonly<Item>[] {
  const items = file[section] ?? [];
  return section === 'rules' ? items.map((item, index) => ({ order: index + 1, ...item })) : items;
}

const variablesOf = ({ rulesConfigs = [] }: TenantFile): DeclaredDocument[] =>
  rulesConfigs.map(({ key, value }) => ({ id: ruleVariableId(key), kind: RULE_VARIABLE, body: { value } }));

function documentOfItem(
  list: ListSection,
  item: Readonly<Item>,
  { stored, now }: { stored: readonly Document[]; now: string },
): DeclaredDocument {
  const { [list.id]: declaredId, ...rest } = item;
  const body = { ...usualMembers[list.kind], ...rest };
  const label = list.label(body);
  const existing = stored.find((one) => one.kind === list.kind && list.label(one.body) === label);
  if (['action', ACTION_MODULE].includes(list.kind) && Array.isArray(rest.secrets))
    Object.assign(body, { secrets: withSecretValues(existing?.body.secrets, rest.secrets, now) });
  if (list.section === 'actions' && rest.deployed === false)
    Object.assign(body, storedVersion(rest, existing?.body));
  if (list.section === 'customDomains') Object.assign(body, storedApiKeys(body, existing?.body));
  const hex = sha256Hex(`${list.kind}\n${label}`);
  const id = typeof declaredId === 'string' ? declaredId : (existing?.id ?? list.newId(hex));
  return { id, kind: list.kind, ...(list.unique && { name: list.unique(label) }), body };
}

/** Keeps the deployed version of an action of which the file has a draft: the deploy tool leaves it at the tenant, too. */
function storedVersion({ deployed_version: declared }: Readonly<Item>, before: Readonly<Item> = {}): Item {
  const { deployed_version, deployed_secrets, versions } = asDraft(before);
  if (declared !== undefined || deployed_version === undefined) return {};
  return {
    deployed_version,
    deployed_secrets,
    ...(versions !== undefined && { versions }),
  };
}

/** Keeps the API keys of a custom domain when the file does not name any, so that its edge keeps working. */
function storedApiKeys(
  { api_key_hashes: declaredHashes }: Readonly<Item>,
  before: Readonly<Item> = {},
): Item {
  const { api_key_hashes: hashes, status } = before;
  return declaredHashes !== undefined || hashes === undefined ? {} : { api_key_hashes: hashes, status };
}

function textsOf({ prompts, branding }: TenantFile): DeclaredDocument[] {
  return [
    ...Object.entries(prompts?.customText ?? {}).flatMap(([language, texts]) =>
      Object.entries(texts).map(([prompt, body]) => ({
        id: `custom-text/${prompt}/${language}`,
        kind: 'custom-text',
        body,
      })),
    ),
    ...Object.entries(prompts?.partials ?? {}).map(([prompt, body]) => ({
      id: `partials/${prompt}`,
      kind: 'partials',
      body,
    })),
    ...(branding.templates ?? []).map(({ body }) => ({ id: TEMPLATE, kind: TEMPLATE, body: { body } })),
  ];
}

function triggersOf(
  { triggers = {} }: TenantFile,
  actions: readonly Document[],
  now: string,
): DeclaredDocument[] {
  return Object.entries(triggers).map(([trigger, bound]) => {
    const bindings = bound.map(({ action_name, display_name, on_error }, index) => {
      const action = actions.find(({ body }) => body.name === action_name);
      if (action === undefined)
        return missingBinding(trigger, { index, action_name, display_name, on_error, now });
      const { id, body: whole, created_at, updated_at } = action;
      const { deployed_secrets: _, versions: _versions, ...body } = whole;
      const secrets = secretNames(body.secrets, updated_at);
      return {
        id: `${trigger}-${index}`,
        trigger_id: trigger,
        display_name: display_name ?? action_name,
        action: { id, ...body, created_at, updated_at, secrets },
        ...(on_error === 'continue' && { on_error }),
        created_at: now,
        updated_at: now,
      };
    });
    return { id: `trigger-${trigger}`, kind: 'trigger', name: trigger, body: { bindings } };
  });
}

/** Returns the binding of an action that is not there, so that what it is bound to fails instead of going without it. */
const missingBinding = (
  trigger: string,
  { index, action_name, display_name, on_error, now }: Item & { index: number },
) => ({
  id: `${trigger}-${index}`,
  trigger_id: trigger,
  display_name: display_name ?? action_name,
  action: { id: '', name: action_name },
  ...(on_error === 'continue' && { on_error }),
  created_at: now,
  updated_at: now,
});

function profilesOf(
  { tokenExchangeProfiles = [] }: TenantFile,
  actions: readonly Document[],
  stored: readonly Document[],
): DeclaredDocument[] {
  return tokenExchangeProfiles.map(({ id: declaredId, action, action_id, ...rest }) => {
    const name = rest.subject_token_type.toLowerCase();
    const before = stored.find((one) => one.kind === EXCHANGE_PROFILE && one.name === name);
    const hex = sha256Hex(`${EXCHANGE_PROFILE}\n${name}`);
    const id = declaredId ?? before?.id ?? `tep_${hex.slice(0, 16)}`;
    // A missing action is a warning.
    const found = actions.find((one) => one.id === action_id || one.body.name === action);
    return { id, kind: EXCHANGE_PROFILE, name, body: { ...rest, action_id: found?.id ?? action_id } };
  });
}

/** `prompts` and `branding` contain only what is stored as documents. */
export function documentSectionsOf(documents: readonly Document[]): Item & { prompts: Item; branding: Item } {
  const ofKind = (kind: string) => documents.filter((one) => one.kind === kind);
  const lists = LISTS.map(({ section, kind, id, label }) => [
    section,
    ofKind(kind)
      .sort((a, b) => (label(a.body) + a.id < label(b.body) + b.id ? -1 : 1))
      .map((one) => ({ [id]: one.id, ...withoutSecretDates(one.body) })),
  ]);
  const triggers = ofKind('trigger').map(({ name = '', body }) => [name, bindingsOf(body)]);
  const rulesConfigs = ofKind(RULE_VARIABLE).map(({ id, body }) => ({
    key: ruleVariableKey(id),
    value: body.value,
  }));
  const tokenExchangeProfiles = ofKind(EXCHANGE_PROFILE).map(({ id, body: { action_id, ...body } }) => {
    const action = documents.find((one) => one.kind === 'action' && one.id === action_id);
    return { id, ...body, ...(action === undefined ? { action_id } : { action: action.body.name }) };
  });
  const customText: Record<string, Item> = {};
  for (const { id, body } of ofKind('custom-text')) {
    const [, prompt = '', language = ''] = id.split('/');
    customText[language] = { ...customText[language], [prompt]: body };
  }
  const partials = ofKind('partials').map(({ id, body }) => [id.split('/')[1], body]);
  const templates = ofKind(TEMPLATE).map(({ body }) => ({ template: 'universal_login', body: body.body }));
  return {
    ...Object.fromEntries(lists),
    triggers: Object.fromEntries(triggers),
    rulesConfigs,
    tokenExchangeProfiles,
    prompts: { customText, partials: Object.fromEntries(partials) },
    branding: { templates },
  };
}

// The list sections of the tenant file whose items are stored as documents.
// docs/understand/decisions/operating.md#sections-of-the-tenant-file-that-came-with-the-management-api-may-be-left-out

/** An item of such a section, as in the file. */
type Item = Record<string, unknown>;

type Document = Frozen<DocumentRecord>;

/** How the items of a section are stored. */
interface ListSection {
  section:
    | 'actions'
    | 'actionModules'
    | 'rules'
    | 'themes'
    | 'logStreams'
    | 'customDomains'
    | 'networkACLs'
    | 'phoneTemplates';
  kind: keyof typeof usualMembers;
  /** The member that contains the id. */
  id: string;
  /** Returns the name that identifies an item. The first of several with one name is meant. */
  label(item: Readonly<Item>): string;
  /** Returns the unique name of the record, if names must be unique. */
  unique?: (label: string) => string;
  newId(hex: string): string;
}

const LISTS: readonly ListSection[] = [
  {
    section: 'actions',
    kind: 'action',
    id: 'id',
    label: ({ name }) => String(name),
    unique: (label) => label.toLowerCase(),
    newId: (hex) =>
      `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20, 32)}`,
  },
  {
    section: 'actionModules',
    kind: ACTION_MODULE,
    id: 'id',
    label: ({ name }) => String(name),
    unique: (label) => label.toLowerCase(),
    newId: (hex) => `acm_${hex.slice(0, 16)}`,
  },
  {
    section: 'rules',
    kind: RULE,
    id: 'id',
    label: ({ name }) => String(name),
    unique: (label) => label.toLowerCase(),
    newId: (hex) => `rul_${hex.slice(0, 16)}`,
  },
  {
    section: 'themes',
    kind: 'theme',
    id: 'themeId',
    label: () => 'default',
    unique: () => 'default',
    newId: (hex) => hex.slice(0, 24),
  },
  {
    section: 'logStreams',
    kind: 'log-stream',
    id: 'id',
    label: ({ name, type }) => String(name ?? type),
    newId: (hex) => `lst_${hex.slice(0, 16)}`,
  },
  {
    section: 'customDomains',
    kind: 'custom-domain',
    id: 'custom_domain_id',
    label: ({ domain }) => String(domain),
    unique: (label) => label.toLowerCase(),
    newId: (hex) => `cd_${hex.slice(0, 16)}`,
  },
  {
    section: 'networkACLs',
    kind: NETWORK_ACL,
    id: 'id',
    label: ({ description }) => String(description),
    newId: (hex) => `acl_${hex.slice(0, 16)}`,
  },
  {
    section: 'phoneTemplates',
    kind: PHONE_TEMPLATE,
    id: 'id',
    label: ({ type }) => String(type),
    unique: (label) => label.toLowerCase(),
    newId: (hex) => `tem_${hex.slice(0, 16)}`,
  },
];

/** The id of the document with the page template. */
const TEMPLATE = 'universal-login';

/** Returns a trigger as the file has it: its actions by name, in the order in which they run. */
function bindingsOf(body: Readonly<Item>): Item[] {
  const bindings = (body.bindings ?? []) as {
    display_name?: string;
    on_error?: string;
    action: { name: string };
  }[];
  return bindings.map(({ display_name, on_error, action }) => ({
    action_name: action.name,
    display_name: display_name ?? action.name,
    ...(on_error === 'continue' && { on_error }),
  }));
}
