// Computes what applying a tenant file changes: which records, and which members of them.
import { collections } from '../records/collections.ts';
import type { DocumentRecord } from '../records/tenant/documents.ts';
import { RULE } from '../records/tenant/rules.ts';
import type { TenantFile } from '../records/tenant/tenant.ts';
import { isUnmanaged } from '../records/tenant/unmanaged.ts';
import { isJsonObject } from '../runtime/json.ts';
import { declaredPart, declares, documentLabel } from './documents.ts';
import { clientIdOfName } from './names.ts';
import { nameOf, SECTION_KEYS } from './sections.ts';
import { APPLIED_COLLECTIONS, type AppliedCollection, type TenantRecords } from './tenant-records.ts';

/** A record that is written or removed. */
export interface Change {
  collection: AppliedCollection;
  id: string;
  before: object | undefined;
  after: object | undefined;
}

/**
 * Returns the changes that make the store equal to a file. In each collection removals come first, so that names
 * are free.
 */
export function changesOf(file: TenantFile, stored: TenantRecords, declared: TenantRecords): Change[] {
  return APPLIED_COLLECTIONS.flatMap((collection) => {
    const before = new Map<string, object>(stored[collection].map((one) => [one.id, one]));
    const after = new Map<string, object>(declared[collection].map((one) => [one.id, one]));
    const stays = (record: object) =>
      file.unmanaged?.removals === true ||
      (collection === 'documents' && isKeptDocument(file, record as DocumentRecord));
    const removed = [...before]
      .filter(([id, record]) => !after.has(id) && !stays(record))
      .map(([id, record]) => ({ collection, id, before: record, after: undefined }));
    const written = [...after]
      .filter(([id, record]) => !isSame(collection, before.get(id), record))
      .map(([id, record]) => ({ collection, id, before: before.get(id), after: record }));
    return [...removed, ...written];
  });
}

const isKeptDocument = (file: TenantFile, { kind, body }: DocumentRecord): boolean =>
  !declares(file, kind) || (kind === RULE && isUnmanaged(file.unmanaged, 'rules', body));

function comparedPart(collection: AppliedCollection, record: object): unknown {
  if (collection === 'documents') return declaredPart(record as DocumentRecord);
  return collection === 'tenant' ? withItemsByName(record) : record;
}

/** Returns the tenant's record with the items of its lists by what they are known by: their order has no meaning. */
function withItemsByName(record: object): object {
  return Object.fromEntries(
    Object.entries(record).map(([section, value]: [string, unknown]) => [
      section,
      Array.isArray(value) && SECTION_KEYS[section] !== undefined ? itemsByName(section, value) : value,
    ]),
  );
}

function itemsByName(section: string, items: readonly unknown[]): object {
  const counts = new Map<string, number>();
  return Object.fromEntries(
    items.map((item) => {
      const name = nameOf(section, item);
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      return [count === 1 ? name : `${name} (${count})`, item];
    }),
  );
}

function isSame(collection: AppliedCollection, before: object | undefined, after: object): boolean {
  if (before === undefined) return false;
  return canonical(comparedPart(collection, before)) === canonical(comparedPart(collection, after));
}

/** Returns JSON with sorted members, because their order has no meaning. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    isJsonObject(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

/** Returns lines for people, one for each changed member: `+` added, `-` removed, `~` changed. Secrets are hidden. */
export function linesOf(changes: readonly Change[]): string[] {
  const written = new Set(changes.map((one) => one.after && labelOf(one.collection, { ...one.after })));
  return changes.flatMap(({ collection, before, after }) => {
    const label = labelOf(collection, (after ?? before) as Readonly<Record<string, unknown>>);
    if (before === undefined) return [`+ ${label || collection}${madeFor(collection, after)}`];
    if (after === undefined) {
      // A connection that only gets another id keeps its users.
      return [`- ${label}${collection === 'connections' && !written.has(label) ? ' (with its users)' : ''}`];
    }
    const isSecret = secretsOf(collection);
    return differences(comparedPart(collection, before), comparedPart(collection, after), []).map((one) =>
      lineOf(label, one, isSecret),
    );
  });
}

/** Returns the name of an application whose client_id was made: nobody else knows which one it is. */
function madeFor(collection: AppliedCollection, record: object | undefined): string {
  const { client_id: id, name } = (record ?? {}) as { client_id?: string; name?: string };
  return collection === 'clients' && name !== undefined && id === clientIdOfName(name) ? ` (${name})` : '';
}

/** Returns which record is changed, and how, in a few words. */
export function subjectOf({ collection, before, after }: Change): string {
  const label = labelOf(collection, (after ?? before) as Readonly<Record<string, unknown>>);
  return `${before === undefined ? '+' : after === undefined ? '-' : '~'} ${label || collection}`;
}

function labelOf(collection: AppliedCollection, record: Readonly<Record<string, unknown>>): string {
  if (collection === 'tenant') return '';
  // Records of this collection are documents, whose labels begin with their own sections.
  if (collection === 'documents') return documentLabel(record as unknown as DocumentRecord);
  const name =
    collection === 'clients'
      ? record.client_id
      : (record.identifier ?? record.name ?? `${record.client_id} ${record.audience}`);
  return `${collection}.${String(name)}`;
}

interface Difference {
  path: string[];
  before: unknown;
  after: unknown;
}

function differences(before: unknown, after: unknown, path: string[]): Difference[] {
  if (canonical(before ?? null) === canonical(after ?? null)) return [];
  const isBoth = (is: (value: unknown) => boolean) => is(before) && is(after);
  if (!isBoth(isJsonObject) && !isBoth(Array.isArray)) return [{ path, before, after }];
  const [a, b] = [before, after] as [Record<string, unknown>, Record<string, unknown>];
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return names.flatMap((name) => differences(a[name], b[name], [...path, name]));
}

const MAX_VALUE_LENGTH = 120;

function lineOf(label: string, one: Difference, isSecret: (path: readonly string[]) => boolean): string {
  const path = one.path.map((step) => (/^\d+$/.test(step) ? `[${step}]` : `.${step}`)).join('');
  const at = `${label}${path}`.replace(/^\./, '');
  const value = (member: unknown) => {
    const text = JSON.stringify(withoutSecrets(member, one.path, isSecret));
    return text.length > MAX_VALUE_LENGTH ? `${text.slice(0, MAX_VALUE_LENGTH)}…` : text;
  };
  if (one.before === undefined) return `+ ${at}: ${value(one.after)}`;
  if (one.after === undefined) return `- ${at}: ${value(one.before)}`;
  return `~ ${at}: ${value(one.before)} → ${value(one.after)}`;
}

/** Names of secrets, which may also occur in sections that this server does not know. */
const SECRET = /secret|password|passphrase|^(private_?key|auth_?token|api_?key|smtp_pass|code)$/i;

/** Returns a function that tells whether a member is stored encrypted, or has the name of a secret. */
function secretsOf(collection: AppliedCollection): (path: readonly string[]) => boolean {
  const patterns = (collections[collection].sealed ?? []).map((path) => path.split('.'));
  return (path) =>
    SECRET.test(path.at(-1) ?? '') ||
    patterns.some(
      (pattern) =>
        pattern.length <= path.length && pattern.every((step, at) => step === '*' || step === path[at]),
    );
}

function withoutSecrets(
  value: unknown,
  path: readonly string[],
  isSecret: (path: readonly string[]) => boolean,
): unknown {
  if (isSecret(path) && typeof value !== 'boolean' && typeof value !== 'number') return '(hidden)';
  if (Array.isArray(value))
    return value.map((item, index) => withoutSecrets(item, [...path, String(index)], isSecret));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, withoutSecrets(member, [...path, name], isSecret)]),
  );
}
