// Importing and exporting many users, by jobs of the Management API.
import type { Context } from 'koa';
import type { Locale } from '../../../capabilities/pages/locales.ts';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { AuthError } from '../../../http/errors.ts';
import { bodyTexts } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { DATABASE } from '../../../records/connections/connections.ts';
import { customDatabase } from '../../../records/database-options.ts';
import type { JobFaultRecord } from '../../../records/state/job-faults.ts';
import { finishedExport, sendExport } from '../../management/jobs/links.ts';
import { callApi } from '../api-calls.ts';
import { goToLogin } from '../console-login.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import { type FaultModel, type FormFault, faultModel, faultOf } from '../form-fault.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import type { UsersDependencies } from './dependencies.ts';
import { USERS } from './paths.ts';
import { requireRight, rightsOf } from './rights.ts';

// Words the faults of a job in the reader's language.

/** Returns the message of a fault. @param message the English message, for a fault that has no words here. */
function jobWords(
  { text }: Pick<Locale, 'text'>,
  message: string,
  fault: JobFaultRecord | undefined,
): string {
  return fault === undefined ? message : text(`console.users.job.fault.${fault.name}`, fault.values);
}

const TRANSFER = `${USERS}/transfer` as const;

/** Returns the path of the file of an export, for administrators who may export. */
export const exportPath = (job: string): string => `${TRANSFER}/${encodeURIComponent(job)}/file`;

const SCOPES = ['read:users', 'create:users'];

/** The maximum size of a file that the Management API accepts, bytes. */
const MAX_FILE_BYTES = 512_000;

interface JobAnswer {
  id: string;
  type: string;
  status: string;
  created_at: string;
  status_details?: string;
  fault?: JobFaultRecord;
  percentage_done?: number;
  summary?: { total: number; inserted: number; updated: number; failed: number };
  location?: string;
  format?: string;
}

export const transferRoutes: RouteDeclarations<UsersDependencies> = {
  [`GET ${TRANSFER}`]: consolePage<UsersDependencies>('users', { scopes: SCOPES }, (deps, ctx, session) => {
    requireRight(rightsOf(session).import);
    return showForms(deps, ctx, session);
  }),
  [`POST ${TRANSFER}/import`]: consoleForm<UsersDependencies>(
    'users',
    {
      scopes: SCOPES,
      isDangerous: true,
      bodies: { file: { maxBytes: MAX_FILE_BYTES, tooLarge: 'The file is larger than 500 kB.' } },
    },
    (deps, ctx, session) => {
      requireRight(rightsOf(session).import);
      return startImport(deps, ctx, session);
    },
  ),
  [`POST ${TRANSFER}/export`]: consoleForm<UsersDependencies>(
    'users',
    { scopes: SCOPES, isDangerous: true },
    (deps, ctx, session) => {
      requireRight(rightsOf(session).export);
      return startExport(deps, ctx, session);
    },
  ),
  [`GET ${TRANSFER}/:job`]: consolePage<UsersDependencies>(
    'users',
    { scopes: SCOPES },
    (deps, ctx, session) => {
      requireRight(rightsOf(session).import);
      return showJob(deps, ctx, session);
    },
  ),
  [`GET ${TRANSFER}/:job/file`]: consolePage<UsersDependencies>(
    'users',
    { scopes: SCOPES },
    (deps, ctx, session) => {
      requireRight(rightsOf(session).export);
      return sendFile(deps, ctx, session);
    },
  ),
};

async function databases({ config }: UsersDependencies): Promise<{ id: string; name: string }[]> {
  return (await config.connections())
    .filter((one) => one.strategy === DATABASE && customDatabase(one) !== 'elsewhere')
    .map(({ id, name }) => ({ id, name }));
}

interface UsersTransferModel extends FaultModel {
  users: string;
  path: string;
  databases: { id: string; name: string }[];
}

export const USERS_TRANSFER_PAGE = declareConsolePage<UsersTransferModel>('console/users-transfer');

async function showForms(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  fault?: FormFault,
): Promise<void> {
  await renderConsole(deps, ctx, session, {
    page: USERS_TRANSFER_PAGE,
    section: 'users',
    title: 't:console.users.transfer.title',
    model: {
      users: USERS,
      path: TRANSFER,
      databases: await databases(deps),
      ...faultModel(fault),
    },
    status: fault?.status ?? 200,
  });
}

async function startImport(deps: UsersDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const { users = '', connection_id = '', upsert } = bodyTexts(ctx);
  if (users.trim() === '')
    return showForms(deps, ctx, session, { status: 400, key: 'console.users.import.noFile' });
  const body = { users, connection_id, upsert: upsert === 'yes' ? 'true' : 'false' };
  await startJob(deps, ctx, session, () => callApi(deps, ctx, session, 'POST /jobs/users-imports', { body }));
}

async function startExport(deps: UsersDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const { connection_id = '', format } = bodyTexts(ctx);
  const body = {
    format: format === 'csv' ? 'csv' : 'json',
    ...(connection_id !== '' && { connection_id }),
  };
  await startJob(deps, ctx, session, () => callApi(deps, ctx, session, 'POST /jobs/users-exports', { body }));
}

async function startJob(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  job: () => Promise<{ body?: unknown }>,
): Promise<void> {
  let id: string;
  try {
    id = ((await job()).body as JobAnswer).id;
  } catch (thrown) {
    return showForms(deps, ctx, session, faultOf(thrown));
  }
  redirectAfterForm(ctx, `${TRANSFER}/${encodeURIComponent(id)}`);
}

/** Sends the file of an export to the administrator who asks now, after a recent login, as for starting it. */
async function sendFile(deps: UsersDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const id = (ctx.params as Record<string, string>).job ?? '';
  if (!session.isFresh)
    return goToLogin(deps, ctx, { to: `${TRANSFER}/${encodeURIComponent(id)}`, previousSession: session });
  const job = await finishedExport(deps.management, id);
  if (job === undefined) throw new AuthError(404, 'not_found', 'There is nothing here.');
  await sendExport(deps.management, ctx, job);
}

export interface UsersJobModel {
  users: string;
  path: string;
  job: {
    isImport: boolean;
    isOpen: boolean;
    isFailed: boolean;
    details: string | undefined;
    done: number;
    summary: { total: number; inserted: number; updated: number; failed: number } | undefined;
    begun: FormattedTime;
    format: string | undefined;
    location: string | undefined;
  };
  failures: {
    lines: {
      user: string | undefined;
      place: ImportFailure['place'];
      errors: { message: string; path?: string }[];
    }[];
    more: number;
  };
}

export const USERS_JOB_PAGE = declareConsolePage<UsersJobModel>('console/users-job');

/** Shows the progress of a job and its failures. The page reloads until the job is done. */
async function showJob(deps: UsersDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const params = { id: (ctx.params as Record<string, string>).job ?? '' };
  const query = { include_places: 'true', include_faults: 'true' };
  const job = (
    await callApi(deps, ctx, session, 'GET /jobs/:id', { params, query: { include_faults: 'true' } })
  ).body as JobAnswer;
  const isOpen = job.status === 'pending' || job.status === 'processing';
  const isImport = job.type === 'users_import';
  const failed =
    isImport && !isOpen
      ? (((await callApi(deps, ctx, session, 'GET /jobs/:id/errors', { params, query })).body ??
          []) as ImportFailure[])
      : [];
  const locale = deps.views.locale(ctx);
  await renderConsole(deps, ctx, session, {
    page: USERS_JOB_PAGE,
    section: 'users',
    title: isImport ? 't:console.users.import.title' : 't:console.users.export.title',
    model: {
      users: USERS,
      path: TRANSFER,
      job: {
        isImport,
        isOpen,
        isFailed: job.status === 'failed',
        details: job.status_details && jobWords(locale, job.status_details, job.fault),
        done: job.percentage_done ?? 0,
        summary: job.summary,
        begun: timesOf(deps, ctx)(job.created_at),
        format: job.format,
        location: job.location,
      },
      failures: failuresOf(failed, locale),
    },
  });
}

// Lists the failures of an import.

/** A user that was not imported, as reported by the Management API. */
interface ImportFailure {
  user: Readonly<Record<string, unknown>>;
  errors: readonly { code: string; message: string; path?: string; fault?: JobFaultRecord }[];
  /** The position in the file: the number of the user, and the line if each user has a line of its own. */
  place?: { number: number; line?: number };
}

/** The maximum number of users listed; the Management API returns all of them. */
const MAX_LISTED = 200;

/** Members by which a user can be found in the file, the best first. */
const NAMES = ['email', 'username', 'phone_number', 'user_id', 'name'] as const;

/** Returns a line for each user up to the maximum, and the number of further users. */
function failuresOf(
  failed: readonly ImportFailure[],
  locale: Locale,
): {
  lines: {
    user: string | undefined;
    place: ImportFailure['place'];
    errors: { message: string; path?: string }[];
  }[];
  more: number;
} {
  const lines = failed.slice(0, MAX_LISTED).map(({ user, errors, place }) => ({
    place,
    user: NAMES.map((name) => user[name]).find((one) => typeof one === 'string' && one !== '') as
      | string
      | undefined,
    errors: errors.map(({ message, path, fault }) => ({
      message: jobWords(locale, message, fault),
      ...(path !== undefined && { path }),
    })),
  }));
  return { lines, more: Math.max(0, failed.length - MAX_LISTED) };
}
