// Download links for finished exports. They are valid for a minute, and signed with a key that is in the job's record
// alone.
// docs/understand/decisions/management-api.md#the-link-to-an-export-is-signed-with-a-key-of-its-job
import { createHmac } from 'node:crypto';
import type { Context } from 'koa';
import { AuthError, linkExpired } from '../../../http/errors.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import { isSameSecret } from '../../../runtime/secrets.ts';
import { managementLimits } from '../management-declaration.ts';
import { managementShape } from '../management-errors.ts';
import { exportFile } from './export-job.ts';
import type { Job, Jobs } from './jobs.ts';

/** Lifetime of a link, in seconds. */
const LIFETIME_SECONDS = 60;

export interface LinkDependencies {
  jobs: Jobs;
  clock: Clock;
  baseUrl: string;
}

export function exportLink(
  { clock, baseUrl }: Pick<LinkDependencies, 'clock' | 'baseUrl'>,
  job: Job,
): string {
  const expires = String(epochSeconds(clock) + LIFETIME_SECONDS);
  return `${baseUrl}/users-exports/${job.id}?expires=${expires}&signature=${signatureOf(job, expires)}`;
}

function signatureOf({ id, linkKey = '' }: Job, expires: string): string {
  return createHmac('sha256', linkKey).update(`${id}\n${expires}`).digest('base64url');
}

/** Sends the file of a finished export, to a request that is authorized. */
export async function sendExport({ jobs }: Pick<LinkDependencies, 'jobs'>, ctx: Context, job: Job) {
  const { name, type, data } = exportFile(job, await jobs.parts(job.id, 'output'));
  ctx.set('Cache-Control', 'no-store');
  ctx.set('Content-Disposition', `attachment; filename="${name}"`);
  ctx.type = type;
  ctx.body = data;
}

/** Returns a finished export; undefined when there is none with this id. */
export async function finishedExport(
  { jobs }: Pick<LinkDependencies, 'jobs'>,
  id: string,
): Promise<Job | undefined> {
  const job = await jobs.get(id);
  return job?.type === 'users_export' && job.status === 'completed' ? job : undefined;
}

async function download({ jobs, clock }: LinkDependencies, ctx: Context): Promise<void> {
  const { expires, signature } = ctx.query;
  const job = await finishedExport({ jobs }, (ctx.params as Record<string, string>).id ?? '');
  const isGood =
    job?.linkKey !== undefined &&
    typeof expires === 'string' &&
    typeof signature === 'string' &&
    isSameSecret(signature, signatureOf(job, expires)) &&
    Number(expires) >= epochSeconds(clock);
  if (!isGood) throw new AuthError(403, '', linkExpired().error_description);
  await sendExport({ jobs }, ctx, job);
}

/** The route of download links. The signature authorizes the request, so it needs no token. */
export const exportLinks: RouteDeclarations<LinkDependencies> = {
  'GET /users-exports/:id': {
    limit: managementLimits.management,
    cors: 'none',
    errors: managementShape,
    handle: download,
  },
};
