// The sections of the tenant file whose records are kept as documents, one after another.
import { ACTION_MODULE } from '../records/action-modules.ts';
import type { DocumentRecord, usualMembers } from '../records/documents.ts';
import type { Frozen } from '../records/record.ts';
import { RULE } from '../records/rules.ts';

/** A record of such a section as the file says it. */
export type Item = Record<string, unknown>;

/** A record of such a section as the store has it. */
export type Document = Frozen<DocumentRecord>;

/** How the records of a section are kept. */
export interface ListSection {
  section: 'actions' | 'actionModules' | 'rules' | 'themes' | 'logStreams' | 'customDomains';
  kind: keyof typeof usualMembers;
  /** The member that holds the id. */
  id: string;
  /** What the item is known by: of several with one name the first is meant. */
  label(item: Readonly<Item>): string;
  /** The record's name, where no two share it. */
  unique?: (label: string) => string;
  newId(hex: string): string;
}

/** All these sections. */
export const LISTS: readonly ListSection[] = [
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
];

/** The id of the document that has the page template. */
export const TEMPLATE = 'universal-login';

/** What the file says of a trigger: its actions by name, in the order in which they run. */
export function bindingsOf(body: Readonly<Item>): Item[] {
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
