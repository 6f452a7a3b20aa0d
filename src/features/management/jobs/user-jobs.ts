// The jobs that import and export users.
import { exportStep } from './export-job.ts';
import { type ImportJobDependencies, importStep } from './import-job.ts';
import { createJobs, JobFault, type Jobs, type JobsDependencies } from './jobs.ts';

/** Creates the jobs of a tenant. */
export function createUserJobs(deps: JobsDependencies & ImportJobDependencies): Jobs {
  return createJobs(deps, async (job, jobs) => {
    if (job.type === 'users_import') return importStep(deps, job, jobs);
    if (job.type === 'users_export') return exportStep(deps);
    throw new JobFault('There is no such job.');
  });
}
