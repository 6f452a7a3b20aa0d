// Background jobs: two at a time, in small steps. Each step stores its result together with the job's progress, so
// that a job continues where it was after a restart.
// docs/understand/decisions/management-api.md#jobs-wait-instead-of-being-refused
import PQueue from 'p-queue';
import type { Logger } from 'pino';
import type { Frozen } from '../../../records/base/record.ts';
import type { JobFaultRecord } from '../../../records/state/job-faults.ts';
import type { JobPartRecord, JobRecord } from '../../../records/state/jobs.ts';
import type { Background } from '../../../runtime/background.ts';
import { type Clock, epochSeconds } from '../../../runtime/clock.ts';
import type { Random } from '../../../runtime/secrets.ts';
import type { Store, Write } from '../../../store/contract.ts';
import type { Leases } from '../../../store/leases.ts';
import { idOf } from '../ids.ts';
import { apiError } from '../management-errors.ts';

export type Job = Frozen<JobRecord>;

/** Number of jobs that a process works on at once. */
const CONCURRENCY = 2;
/** Highest number of unfinished jobs, because each keeps a file in the store. */
const MAX_OPEN = 100;
/** How long a job and its files are kept, in seconds. */
const RETENTION_SECONDS = 24 * 3600;
/** How long a job may take, in milliseconds. */
const MAX_DURATION = 2 * 3_600_000;
/** How often jobs of other processes are looked for, in milliseconds. */
const POLL_INTERVAL = 15_000;

export interface JobsDependencies {
  store: Store;
  background: Background;
  clock: Clock;
  random: Random;
  log: Logger;
  leases: Pick<Leases, 'ifFree'>;
  /** Aborted when the server shuts down. A job then continues at the next start. */
  ending: AbortSignal;
}

/** One step of a job. @returns whether there is more to do. @throws JobFault to end the job as failed. */
export type Step = (job: Job) => Promise<boolean>;

/** The reason why a job failed, in words for the caller who started it. */
export class JobFault extends Error {
  readonly fault: JobFaultRecord | undefined;

  /** @param fault the reason in a form that the console translates. */
  constructor(message: string, fault?: JobFaultRecord) {
    super(message);
    this.fault = fault;
  }
}

export interface Jobs {
  /** @param input the file it works on. @throws AuthError 429 if too many jobs are unfinished. */
  start(job: Omit<JobRecord, 'id' | 'status' | 'created_at' | 'processed'>, input?: string): Promise<Job>;
  /** Stores a job that is finished already. */
  recordFinished(job: Pick<JobRecord, 'type' | 'status' | 'status_details'>): Promise<Job>;
  get(id: string): Promise<Job | undefined>;
  /** Returns the texts of one kind that belong to a job, in order. */
  parts(id: string, kind: JobPartRecord['kind']): Promise<string[]>;
  /** Continues unfinished jobs of the last run and, with a shared store, of other processes. */
  resume(): void;
}

/** @param number its position among those of its kind. */
export function partWrite(
  job: Job,
  kind: JobPartRecord['kind'],
  number: number,
  text: string,
): Extract<Write, { put: unknown }> {
  const id = `${job.id}|${kind}|${String(number).padStart(9, '0')}`;
  return { collection: 'jobParts', put: { id, job: job.id, kind, text, ...expiryOf(job) } };
}

const expiryOf = ({ expiresAt }: Job) => (expiresAt === undefined ? {} : { expiresAt });

/** @param stepOf returns the step of a job. */
export function createJobs(deps: JobsDependencies, stepOf: (job: Job, jobs: Jobs) => Promise<Step>): Jobs {
  const { store, background, clock, random, ending } = deps;
  const records = store.collection('jobs');
  const newRecord = (): Pick<JobRecord, 'id' | 'created_at' | 'processed' | 'expiresAt'> => ({
    id: idOf('job', random),
    created_at: new Date(clock()).toISOString(),
    processed: 0,
    expiresAt: epochSeconds(clock) + RETENTION_SECONDS,
  });
  const { enqueue, takeUp } = workers(deps, (job) => stepOf(job, jobs));
  const jobs: Jobs = {
    start: async (job, input) => {
      const open = await openJobs(store);
      if (open.length >= MAX_OPEN) {
        const message = `There are ${open.length} active jobs, please wait until some of them are finished and try again`;
        throw apiError(429, message, 'too_many_requests');
      }
      const record: JobRecord = { ...job, ...newRecord(), status: 'pending' };
      await store.batch([
        { collection: 'jobs', insert: record },
        ...(input === undefined ? [] : [partWrite(record, 'input', 0, input)]),
      ]);
      enqueue(record.id);
      return record;
    },
    recordFinished: async (job) => {
      const record: JobRecord = { ...job, ...newRecord() };
      await records.insert(record);
      return record;
    },
    get: (id) => records.get(id),
    parts: async (id, kind) => {
      const found = await store.collection('jobParts').findBy('job', `${id}\n${kind}`);
      return found.map(({ text }) => text);
    },
    resume: () => {
      background.run('jobs of before', takeUp);
      // A store that no other process has open gets no jobs that this process does not know.
      if (store.exclusive === true) return;
      const poll = setInterval(() => background.run('jobs of others', takeUp), POLL_INTERVAL).unref();
      ending.addEventListener('abort', () => clearInterval(poll));
    },
  };
  return jobs;
}

/** Runs jobs. A lease makes sure that one process at a time works on each. */
function workers(deps: JobsDependencies, stepOf: (job: Job) => Promise<Step>) {
  const { store, background, log, leases, ending } = deps;
  const queue = new PQueue({ concurrency: CONCURRENCY });
  const work = async (id: string, lost: AbortSignal): Promise<void> => {
    const fail = ({ message: status_details, fault }: JobFault) =>
      store
        .collection('jobs')
        .update(id, (job) => ({ ...job, status: 'failed', status_details, ...(fault && { fault }) }));
    try {
      await run({ ...deps, ending: AbortSignal.any([ending, lost]) }, id, stepOf);
    } catch (thrown) {
      const isJobFault = thrown instanceof JobFault;
      if (!isJobFault) log.error({ err: thrown, job: id }, 'a job failed');
      await fail(isJobFault ? thrown : new JobFault('An unexpected error occurred.', { name: 'unexpected' }));
    }
    // The input is no longer needed, and may contain password hashes.
    if (!ending.aborted && !lost.aborted) await removeInput(store, id);
  };
  const queuedIds = new Set<string>();
  const enqueue = (id: string) => {
    if (queuedIds.has(id)) return;
    queuedIds.add(id);
    background.run('a job', () =>
      queue.add(async () => {
        await leases.ifFree(`job ${id}`, (lost) => work(id, lost)).finally(() => queuedIds.delete(id));
      }),
    );
  };
  const enqueueOpenJobs = async () => {
    for (const { id } of await openJobs(store)) enqueue(id);
  };
  return { enqueue, takeUp: enqueueOpenJobs };
}

const isOpen = ({ status }: Job) => status === 'processing' || status === 'pending';

async function openJobs(store: Store): Promise<Job[]> {
  const jobs = store.collection('jobs');
  return [...(await jobs.findBy('status', 'processing')), ...(await jobs.findBy('status', 'pending'))];
}

async function removeInput(store: Store, id: string): Promise<void> {
  await store.collection('jobParts').deleteBy('job', `${id}\ninput`);
}

async function run(
  { store, clock, ending }: JobsDependencies,
  id: string,
  stepOf: (job: Job) => Promise<Step>,
): Promise<void> {
  const jobs = store.collection('jobs');
  // Another process may have finished the job in the meantime.
  const found = await jobs.get(id);
  if (ending.aborted || found === undefined || !isOpen(found)) return;
  let job: Job | undefined = await jobs.update(id, (current) => ({
    ...current,
    status: 'processing',
    startedAt: current.startedAt ?? clock(),
  }));
  const step = job && (await stepOf(job));
  while (job !== undefined && step !== undefined) {
    if (clock() - (job.startedAt ?? 0) > MAX_DURATION)
      throw new JobFault('The job took longer than two hours.', { name: 'long' });
    const isMore = await step(job);
    if (!isMore) {
      await jobs.update(id, (current) => ({ ...current, status: 'completed' }));
      return;
    }
    if (ending.aborted) return;
    // Lets requests run between two steps.
    await new Promise((resolve) => setImmediate(resolve));
    job = await jobs.get(id);
  }
}
