// An export of users as a job: pieces of a compressed file, one after another.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { JobRecord } from '../../records/jobs.ts';
import type { Frozen } from '../../records/record.ts';
import type { Store } from '../../store/contract.ts';
import { userView } from '../resources/users/view.ts';
import { type Job, partWrite, type Step } from './jobs.ts';

const compress = promisify(gzip);

/** Users of one step. */
const AT_A_TIME = 200;

/** Columns of an export that names none. */
const USUAL =
  'user_id email email_verified username phone_number name given_name family_name nickname picture created_at updated_at last_login logins_count blocked'
    .split(' ')
    .map((name) => ({ name }));

/** One step: compressed pieces put together are a compressed file (RFC 1952 §2.2). */
export function exportStep({ store }: { store: Store }): Step {
  return async (job) => {
    const { export: wanted, processed } = job;
    if (wanted === undefined) return false;
    const { after, limit = Number.POSITIVE_INFINITY } = wanted;
    const taken = job.summary?.inserted ?? 0;
    const page = await store
      .collection('users')
      .list({ limit: AT_A_TIME, ...(after === undefined ? {} : { after }) });
    const views = await Promise.all(
      page.records.map(async (user) => {
        const identities = await store.collection('identities').findBy('user', user.id);
        const isMeant =
          job.connection === undefined || identities.some((one) => one.connection === job.connection);
        return isMeant ? [userView(user, identities)] : [];
      }),
    );
    const chosen = views.flat().slice(0, limit - taken);
    const text = textOf(wanted, chosen, processed === 0);
    const last = page.records.at(-1)?.id ?? after;
    const count = taken + chosen.length;
    const data = await compress(text);
    await store.batch([
      partWrite(job, 'output', processed, data.toString('base64')),
      {
        collection: 'jobs',
        update: job.id,
        change: (before) => ({
          ...before,
          processed: processed + page.records.length,
          summary: { inserted: count, updated: 0, failed: 0 },
          ...(before.export && { export: { ...before.export, ...(last !== undefined && { after: last }) } }),
        }),
      },
    ]);
    return page.next !== undefined && count < limit;
  };
}

type Wanted = Frozen<NonNullable<JobRecord['export']>>;

/** The lines of some users; a table's names stand above the first. */
function textOf(
  { format, fields }: Wanted,
  users: readonly Record<string, unknown>[],
  isFirst: boolean,
): string {
  if (format === 'json') {
    const shown = fields === undefined ? users : users.map((user) => chosenOf(user, fields));
    return shown.map((user) => `${JSON.stringify(user)}\n`).join('');
  }
  const columns = fields ?? USUAL;
  const rows = users.map((user) => columns.map(({ name }) => cell(valueAt(user, name))));
  const head = columns.map((column) => cell(nameOf(column)));
  return [...(isFirst ? [head] : []), ...rows].map((row) => `${row.join(',')}\r\n`).join('');
}

type Field = NonNullable<Wanted['fields']>[number];

const nameOf = ({ name, export_as }: Field) => export_as ?? name;

function chosenOf(user: Record<string, unknown>, fields: readonly Field[]): Record<string, unknown> {
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = valueAt(user, field.name);
      return value === undefined ? [] : [[nameOf(field), value]];
    }),
  );
}

/** The value at a path such as `identities[0].connection` or `user_metadata.city`. */
function valueAt(user: Record<string, unknown>, path: string): unknown {
  let value: unknown = user;
  for (const name of path.split(/[.[\]]+/).filter((part) => part !== '')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/** RFC 4180 §2; what a spreadsheet would run as a formula is text. */
function cell(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The file of a finished export. */
export function exportFile(job: Job, parts: readonly string[]): { name: string; type: string; data: Buffer } {
  return {
    name: `users.${job.export?.format ?? 'json'}.gz`,
    type: 'application/gzip',
    data: Buffer.concat(parts.map((part) => Buffer.from(part, 'base64'))),
  };
}
