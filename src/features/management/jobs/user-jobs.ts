// The jobs that import and export users.

import { AuthError } from '../../../http/errors.ts';
import { DATABASE } from '../../../records/connections/connections.ts';
import { importRules } from '../../../records/connections/database-attributes.ts';
import { customDatabase, databaseOptions } from '../../../records/database-options.ts';
import type { Store, Write } from '../../../store/contract.ts';
import { expectedConnection } from '../../../users/connection-check.ts';
import { type ImportDependencies, type ImportOutcome, importUsers } from '../../../users/transfer/import.ts';
import { FileFault, readFile } from '../../../users/transfer/transfer-file.ts';
import { exportStep } from './export-job.ts';
import {
  createJobs,
  type Job,
  JobFault,
  type Jobs,
  type JobsDependencies,
  partWrite,
  type Step,
} from './jobs.ts';

export function createUserJobs(deps: JobsDependencies & ImportJobDependencies): Jobs {
  return createJobs(deps, async (job, jobs) => {
    if (job.type === 'users_import') return importStep(deps, job, jobs);
    if (job.type === 'users_export') return exportStep(deps);
    throw new JobFault('There is no such job.');
  });
}

// The import of users as a job.

/** Number of users that one step imports: few, so that logins do not wait long for the store. */
const USERS_PER_STEP = 50;

interface ImportJobDependencies extends ImportDependencies {
  store: Store;
}

/** @throws JobFault if the file cannot be read; the step throws one if the connection was deleted. */
async function importStep(deps: ImportJobDependencies, job: Job, jobs: Jobs): Promise<Step> {
  const [text = ''] = await jobs.parts(job.id, 'input');
  const users = usersOf(text);
  return async (current) => {
    const connection = await deps.store.collection('connections').get(current.connection_id ?? '');
    if (connection?.strategy !== DATABASE || customDatabase(connection) === 'elsewhere') throw noConnection();
    const { processed, upsert = false } = current;
    const stepUsers = users.slice(processed, processed + USERS_PER_STEP);
    const progressWrites = (outcome: ImportOutcome): Write[] => [
      ...(outcome.failed.length === 0
        ? []
        : [partWrite(current, 'errors', processed, JSON.stringify(outcome.failed))]),
      {
        collection: 'jobs',
        update: current.id,
        change: (before) => ({
          ...before,
          processed: processed + stepUsers.length,
          total: users.length,
          summary: {
            inserted: (before.summary?.inserted ?? 0) + outcome.inserted,
            updated: (before.summary?.updated ?? 0) + outcome.updated,
            failed: (before.summary?.failed ?? 0) + outcome.failed.length,
          },
        }),
      },
    ];
    await importUsers(
      deps,
      { ...expectedConnection(connection), upsert, ...importRules(databaseOptions(connection)) },
      stepUsers,
      progressWrites,
    ).catch((thrown: unknown) => {
      // Deleted while this step ran.
      throw thrown instanceof AuthError ? noConnection() : thrown;
    });
    return processed + stepUsers.length < users.length;
  };
}

const noConnection = () => new JobFault('The connection does not exist.', { name: 'connection' });

function usersOf(text: string) {
  try {
    return readFile(text, DATABASE).users;
  } catch (thrown) {
    if (thrown instanceof FileFault) throw new JobFault(thrown.message, thrown.fault);
    throw thrown;
  }
}
