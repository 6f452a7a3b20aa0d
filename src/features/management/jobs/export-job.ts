// The export of users as a job. Its output is stored in compressed parts.
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Frozen } from '../../../records/base/record.ts';
import type { JobRecord } from '../../../records/state/jobs.ts';
import type { Store } from '../../../store/contract.ts';
import { userView } from '../resources/users/user-calls.ts';
import { type Job, partWrite, type Step } from './jobs.ts';

const compress = promisify(gzip);

const USERS_PER_STEP = 200;

/** The columns of a CSV export that names none. */
const DEFAULT_COLUMNS =
  'user_id email email_verified username phone_number name given_name family_name nickname picture created_at updated_at last_login logins_count blocked'
    .split(' ')
    .map((name) => ({ name }));

/**
 * Returns the step of an export: it reads some users and stores them as one compressed part. Compressed parts in
 * sequence are a valid gzip file (RFC 1952 §2.2).
 */
export function exportStep({ store }: { store: Store }): Step {
  return async (job) => {
    const { export: options, processed } = job;
    if (options === undefined) return false;
    const { after, limit = Number.POSITIVE_INFINITY } = options;
    const exportedCount = job.summary?.inserted ?? 0;
    const page = await store
      .collection('users')
      .list({ limit: USERS_PER_STEP, ...(after === undefined ? {} : { after }) });
    const views = await Promise.all(
      page.records.map(async (user) => {
        const identities = await store.collection('identities').findBy('user', user.id);
        const isInConnection =
          job.connection === undefined || identities.some((one) => one.connection === job.connection);
        return isInConnection ? [userView(user, identities)] : [];
      }),
    );
    const users = views.flat().slice(0, limit - exportedCount);
    const text = textOf(options, users, processed === 0);
    const lastId = page.records.at(-1)?.id ?? after;
    const count = exportedCount + users.length;
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
          ...(before.export && {
            export: { ...before.export, ...(lastId !== undefined && { after: lastId }) },
          }),
        }),
      },
    ]);
    return page.next !== undefined && count < limit;
  };
}

type ExportOptions = Frozen<NonNullable<JobRecord['export']>>;

/** Returns the lines of some users; a CSV file begins with a line of column names. */
function textOf(
  { format, fields }: ExportOptions,
  users: readonly Record<string, unknown>[],
  isFirst: boolean,
): string {
  if (format === 'json') {
    const selectedUsers = fields === undefined ? users : users.map((user) => selectedFields(user, fields));
    return selectedUsers.map((user) => `${JSON.stringify(user)}\n`).join('');
  }
  const columns = fields ?? DEFAULT_COLUMNS;
  const rows = users.map((user) => columns.map(({ name }) => cell(valueAt(user, name))));
  const header = columns.map((column) => cell(nameOf(column)));
  return [...(isFirst ? [header] : []), ...rows].map((row) => `${row.join(',')}\r\n`).join('');
}

type Field = NonNullable<ExportOptions['fields']>[number];

const nameOf = ({ name, export_as }: Field) => export_as ?? name;

function selectedFields(user: Record<string, unknown>, fields: readonly Field[]): Record<string, unknown> {
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = valueAt(user, field.name);
      return value === undefined ? [] : [[nameOf(field), value]];
    }),
  );
}

/** Returns the value at a path such as `identities[0].connection` or `user_metadata.city`. */
function valueAt(user: Record<string, unknown>, path: string): unknown {
  let value: unknown = user;
  for (const name of path.split(/[.[\]]+/).filter((part) => part !== '')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/** Returns a CSV cell (RFC 4180 §2). A text that a spreadsheet would run as a formula gets a leading apostrophe. */
function cell(value: unknown): string {
  if (value === undefined || value === null) return '';
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Returns the file of a finished export: name, media type and content. */
export function exportFile(job: Job, parts: readonly string[]): { name: string; type: string; data: Buffer } {
  return {
    name: `users.${job.export?.format ?? 'json'}.gz`,
    type: 'application/gzip',
    data: Buffer.concat(parts.map((part) => Buffer.from(part, 'base64'))),
  };
}
