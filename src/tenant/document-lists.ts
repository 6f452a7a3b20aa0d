// The list sections of the tenant file whose items are stored as documents.
import { ACTION_MODULE } from '../records/action-modules.ts';
import type { DocumentRecord, usualMembers } from '../records/documents.ts';
import { NETWORK_ACL } from '../records/network-acls.ts';
import type { Frozen } from '../records/record.ts';
import { RULE } from '../records/rules.ts';

/** An item of such a section, as in the file. */
export type Item = Record<string, unknown>;

/** A stored document. */
export type Document = Frozen<DocumentRecord>;

/** How the items of a section are stored. */
export interface ListSection {
  section: 'actions' | 'actionModules' | 'rules' | 'themes' | 'logStreams' | 'customDomains' | 'networkACLs';
  kind: keyof typeof usualMembers;
  /** The member that contains the id. */
  id: string;
  /** Returns the name that identifies an item. The first of several with one name is meant. */
  label(item: Readonly<Item>): string;
  /** Returns the unique name of the record, if names must be unique. */
  unique?: (label: string) => string;
  newId(hex: string): string;
}

/** All such sections. */
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
  {
    section: 'networkACLs',
    kind: NETWORK_ACL,
    id: 'id',
    label: ({ description }) => String(description),
    newId: (hex) => `acl_${hex.slice(0, 16)}`,
  },
];

/** The id of the document with the page template. */
export const TEMPLATE = 'universal-login';

/** Returns a trigger as the file has it: its actions by name, in the order in which they run. */
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
