// `/jobs`: importing and exporting users, and sending verification e-mails.
import { z } from 'zod';
import type { Connection } from '../../../../records/collections.ts';
import { DATABASE } from '../../../../records/connections/connections.ts';
import { customDatabase } from '../../../../records/database-options.ts';
import type { Random } from '../../../../runtime/secrets.ts';
import type { Store } from '../../../../store/contract.ts';
import type { Config } from '../../../../tenant/config.ts';
import { type FailedUser, withoutFaults } from '../../../../users/transfer/transfer-file.ts';
import type { User } from '../../../../users/user.ts';
import type { Users } from '../../../../users/users.ts';
import { type Answer, type Call, type Caller, callsWith, noContent, ok } from '../../call.ts';
import type { Job, Jobs } from '../../jobs/jobs.ts';
import { apiError } from '../../management-errors.ts';
import { flag } from '../../management-fields.ts';
import { notFound } from '../../resource.ts';
import { noUser } from './user-calls.ts';

export interface JobsDependencies {
  store: Store;
  users: Users;
  config: Pick<Config, 'connection' | 'client'>;
  random: Random;
  jobs: Jobs;
  /**
   * Returns the download link of a finished export. A client gets one that is its own authorization for a minute; an
   * administrator's asks for the session and the role again.
   */
  linkTo(job: Job, caller: Caller): string;
  /** Sends a verification e-mail, if the tenant sends these. */
  askToVerify(user: User, connection: Connection, clientId: string | undefined, ip: string): Promise<void>;
}

/** The largest import file, in bytes. */
const MAX_FILE_BYTES = 512_000;

const noJob = notFound('Job not found');
const noConnection = () => apiError(400, 'The connection does not exist', 'inexistent_connection');

const formFlag = z.enum(['true', 'false', '']).transform((text) => text === 'true');

const importBody = z.strictObject({
  users: z.string(),
  connection_id: z.string().min(1).max(64),
  upsert: formFlag.optional(),
  external_id: z.string().max(64).optional(),
  // docs/understand/decisions/management-api.md#send_completion_email-of-an-import-is-accepted-and-has-no-effect
  send_completion_email: formFlag.optional(),
});

const exportBody = z.strictObject({
  connection_id: z.string().max(64).nullish(),
  format: z.enum(['json', 'csv']).nullish(),
  limit: z.int().min(1).nullish(),
  fields: z
    .array(
      z.strictObject({ name: z.string().min(1).max(256), export_as: z.string().min(1).max(256).optional() }),
    )
    .min(1)
    .max(200)
    .nullish(),
});

const verificationBody = z.strictObject({
  user_id: z.string().min(1).max(300),
  client_id: z.string().max(255).nullish(),
  identity: z
    .strictObject({
      user_id: z.string().max(300),
      provider: z.string().max(64),
      connection_id: z.string().max(64).optional(),
    })
    .nullish(),
  organization_id: z.string().max(64).nullish(),
});

function viewOf({ linkTo }: Pick<JobsDependencies, 'linkTo'>, job: Job, caller: Caller): object {
  const { id, type, status, created_at, connection_id, external_id, status_details, total, processed } = job;
  const isImport = type === 'users_import';
  const percentage = total === undefined || total === 0 ? 0 : Math.floor((processed / total) * 100);
  return {
    id,
    type,
    status,
    created_at,
    ...(connection_id !== undefined && { connection_id }),
    ...(external_id !== undefined && { external_id }),
    ...(status_details !== undefined && { status_details }),
    ...(status !== 'failed' &&
      type !== 'verification_email' && { percentage_done: status === 'completed' ? 100 : percentage }),
    ...(isImport && status === 'completed' && { summary: { total: total ?? 0, ...job.summary } }),
    ...(type === 'users_export' && status === 'completed' && { location: linkTo(job, caller) }),
    ...(job.export && {
      format: job.export.format,
      ...(job.export.limit !== undefined && { limit: job.export.limit }),
      ...(job.export.fields && { fields: job.export.fields }),
    }),
  };
}

/** Returns the job that a path names. @throws AuthError 404 */
async function jobOf({ jobs }: Pick<JobsDependencies, 'jobs'>, id = ''): Promise<Job> {
  const job = await jobs.get(id);
  if (job === undefined) throw noJob();
  return job;
}

/** @throws AuthError 400 */
async function connectionOf({ store }: JobsDependencies, id: string): Promise<Connection> {
  const connection = await store.collection('connections').get(id);
  if (connection === undefined) throw noConnection();
  return connection;
}

async function startImport(
  deps: JobsDependencies,
  body: z.output<typeof importBody>,
  caller: Caller,
): Promise<Answer> {
  const connection = await connectionOf(deps, body.connection_id);
  if (connection.strategy !== DATABASE) {
    throw apiError(400, 'The connection must be a database connection', 'invalid_body');
  }
  if (customDatabase(connection) === 'elsewhere') {
    throw apiError(400, 'The users of the connection are kept elsewhere', 'invalid_body');
  }
  const { upsert = false, external_id } = body;
  const source = {
    connection_id: body.connection_id,
    connection: connection.name,
    ...(external_id !== undefined && { external_id }),
  };
  const job = await deps.jobs.start({ type: 'users_import', ...source, upsert }, body.users);
  return { status: 202, body: viewOf(deps, job, caller) };
}

async function startExport(
  deps: JobsDependencies,
  body: z.output<typeof exportBody>,
  caller: Caller,
): Promise<Answer> {
  const connection = body.connection_id == null ? undefined : await connectionOf(deps, body.connection_id);
  const job = await deps.jobs.start({
    type: 'users_export',
    ...(connection && { connection_id: connection.id, connection: connection.name }),
    export: {
      format: body.format ?? 'json',
      ...(body.limit != null && { limit: body.limit }),
      ...(body.fields != null && {
        fields: body.fields.map(({ name, export_as }) => ({ name, ...(export_as && { export_as }) })),
      }),
    },
    linkKey: deps.random(32).toString('base64url'),
  });
  return ok(viewOf(deps, job, caller));
}

async function sendVerification(
  deps: JobsDependencies,
  body: z.output<typeof verificationBody>,
  ip: string,
): Promise<Answer> {
  const user = await deps.users.get(body.user_id);
  if (user === undefined) throw noUser();
  const identities = await deps.users.identitiesOf(user.id);
  const { identity: identityReference, client_id } = body;
  const identity = identities.find((one) =>
    identityReference == null
      ? one.email === user.email
      : one.upstream_id === identityReference.user_id && one.provider === identityReference.provider,
  );
  if (user.email === undefined || identity === undefined) {
    throw apiError(400, 'The user has no e-mail address to verify', 'invalid_body');
  }
  if (client_id != null && (await deps.config.client(client_id)) === undefined) {
    throw apiError(404, 'The client does not exist', 'inexistent_client');
  }
  const connection = await deps.config.connection(identity.connection);
  if (connection === undefined) throw noConnection();
  await deps.askToVerify(user, connection, client_id ?? undefined, ip);
  const job = await deps.jobs.recordFinished({ type: 'verification_email', status: 'completed' });
  const { id, type, created_at } = job;
  return { status: 201, body: { id, type, status: 'pending', created_at } };
}

const call = callsWith<JobsDependencies>();
const READ_SCOPES = ['create:users', 'read:users'];

export const jobCalls: Call<JobsDependencies>[] = [
  call({
    method: 'POST',
    path: '/jobs/users-imports',
    scopes: ['create:users'],
    summary: 'Create import users job',
    file: {
      field: 'users',
      maxBytes: MAX_FILE_BYTES,
      tooLarge: `Payload content length greater than maximum allowed: ${MAX_FILE_BYTES}`,
    },
    body: importBody,
    handle: (deps, { body, caller }) => startImport(deps, body, caller),
  }),
  call({
    method: 'POST',
    path: '/jobs/users-exports',
    scopes: ['read:users'],
    // The file has what pages mask.
    roleScopes: ['create:users'],
    summary: 'Create export users job',
    body: exportBody,
    handle: (deps, { body, caller }) => startExport(deps, body, caller),
  }),
  call({
    method: 'POST',
    path: '/jobs/verification-email',
    scopes: ['update:users'],
    summary: 'Send an email address verification email',
    body: verificationBody,
    handle: (deps, { body, ip }) => sendVerification(deps, body, ip),
  }),
  call({
    method: 'GET',
    path: '/jobs/:id',
    scopes: READ_SCOPES,
    summary: 'Get a job',
    query: z.strictObject({ include_faults: flag.optional() }),
    handle: async (deps, { params, query, caller }) => {
      const job = await jobOf(deps, params.id);
      // Only callers who may read users get the link to an export.
      const { location, ...view } = viewOf(deps, job, caller) as { location?: string };
      const includesLink = location !== undefined && caller.scopes.has('read:users');
      const includesFault = query.include_faults === true && job.fault !== undefined;
      return ok({ ...view, ...(includesLink && { location }), ...(includesFault && { fault: job.fault }) });
    },
  }),
  call({
    method: 'GET',
    path: '/jobs/:id/errors',
    scopes: READ_SCOPES,
    summary: 'Get job error details',
    query: z.strictObject({ include_places: flag.optional(), include_faults: flag.optional() }),
    handle: async (deps, { params, query }) => {
      const job = await jobOf(deps, params.id);
      const parts = await deps.jobs.parts(job.id, 'errors');
      if (parts.length === 0) return noContent();
      const failed = parts.flatMap((part) => JSON.parse(part) as FailedUser[]);
      const users = query.include_faults === true ? failed : failed.map(withoutFaults);
      return ok(query.include_places === true ? users : users.map(({ place: _, ...one }) => one));
    },
  }),
];
