// The jobs of a store: two at a time, in the background, in small steps, each of which is noted in the job's record with
// what it did, so that a restart takes every job up where it was.
import PQueue from 'p-queue';
import type { Logger } from 'pino';
import type { JobFaultRecord } from '../../records/job-faults.ts';
import type { JobPartRecord, JobRecord } from '../../records/jobs.ts';
import type { Frozen } from '../../records/record.ts';
import type { Background } from '../../runtime/background.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import type { Random } from '../../runtime/random.ts';
import type { Store, Write } from '../../store/contract.ts';
import type { Leases } from '../../store/leases.ts';
import { apiError } from '../errors.ts';
import { idOf } from '../ids.ts';

export type Job = Frozen<JobRecord>;

/** Jobs that are worked on at once. */
const AT_ONCE = 2;
/** Jobs that wait or are worked on, at most: each keeps a file. */
const MOST_OPEN = 100;
/** For how long a job and its files are kept, seconds. */
const KEPT = 24 * 3600;
/** For how long one may be worked on, milliseconds. */
const LONGEST = 2 * 3_600_000;
/** How often it is looked for what other processes have left, milliseconds. */
const LOOK = 15_000;

export interface JobsDependencies {
  store: Store;
  background: Background;
  clock: Clock;
  random: Random;
  log: Logger;
  leases: Pick<Leases, 'ifFree'>;
  /** Aborted when the server is about to end: a job then waits for the next start. */
  ending: AbortSignal;
}

/** One step of a job. @returns whether there is more to do. @throws JobFault to end it as failed. */
export type Step = (job: Job) => Promise<boolean>;

/** What a job fails of, in words for whoever began it. */
export class JobFault extends Error {
  readonly fault: JobFaultRecord | undefined;

  /** @param fault the same for whoever words it. */
  constructor(message: string, fault?: JobFaultRecord) {
    super(message);
    this.fault = fault;
  }
}

export interface Jobs {
  /** Begins a job. @throws AuthError 429 when too many are under way. */
  begin(job: Omit<JobRecord, 'id' | 'status' | 'created_at' | 'processed'>, input?: string): Promise<Job>;
  /** Keeps a job that was done at once. */
  keep(job: Pick<JobRecord, 'type' | 'status' | 'status_details'>): Promise<Job>;
  get(id: string): Promise<Job | undefined>;
  /** The texts of a kind that belong to a job, in their order. */
  parts(id: string, kind: JobPartRecord['kind']): Promise<string[]>;
  /** Takes up what another process has left, now and from then on. */
  resume(): void;
}

/** The write that adds a part. @param number where it is among those of its kind. */
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

/** The jobs. @param stepOf what is done for a job, given the means to read its parts. */
export function createJobs(deps: JobsDependencies, stepOf: (job: Job, jobs: Jobs) => Promise<Step>): Jobs {
  const { store, background, clock, random, ending } = deps;
  const records = store.collection('jobs');
  const fresh = (): Pick<JobRecord, 'id' | 'created_at' | 'processed' | 'expiresAt'> => ({
    id: idOf('job', random),
    created_at: new Date(clock()).toISOString(),
    processed: 0,
    expiresAt: epochSeconds(clock) + KEPT,
  });
  const { enqueue, takeUp } = workers(deps, (job) => stepOf(job, jobs));
  const jobs: Jobs = {
    begin: async (job, input) => {
      const open = await openJobs(store);
      if (open.length >= MOST_OPEN) {
        const words = `There are ${open.length} active jobs, please wait until some of them are finished and try again`;
        throw apiError(429, words, 'too_many_requests');
      }
      const record: JobRecord = { ...job, ...fresh(), status: 'pending' };
      await store.batch([
        { collection: 'jobs', insert: record },
        ...(input === undefined ? [] : [partWrite(record, 'input', 0, input)]),
      ]);
      enqueue(record.id);
      return record;
    },
    keep: async (job) => {
      const record: JobRecord = { ...job, ...fresh() };
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
      // Those of a store that nobody else has open are all known.
      if (store.exclusive === true) return;
      const look = setInterval(() => background.run('jobs of others', takeUp), LOOK).unref();
      ending.addEventListener('abort', () => clearInterval(look));
    },
  };
  return jobs;
}

/** What works on jobs, of which one process at a time works on each. */
function workers(deps: JobsDependencies, stepOf: (job: Job) => Promise<Step>) {
  const { store, background, log, leases, ending } = deps;
  const queue = new PQueue({ concurrency: AT_ONCE });
  const work = async (id: string, lost: AbortSignal): Promise<void> => {
    const fail = ({ message: status_details, fault }: JobFault) =>
      store
        .collection('jobs')
        .update(id, (job) => ({ ...job, status: 'failed', status_details, ...(fault && { fault }) }));
    try {
      await run({ ...deps, ending: AbortSignal.any([ending, lost]) }, id, stepOf);
    } catch (thrown) {
      const isOurs = thrown instanceof JobFault;
      if (!isOurs) log.error({ err: thrown, job: id }, 'a job failed');
      await fail(isOurs ? thrown : new JobFault('An unexpected error occurred.', { name: 'unexpected' }));
    }
    // Nobody asks for the input again; it may hold hashes.
    if (!ending.aborted && !lost.aborted) await removeInput(store, id);
  };
  const waiting = new Set<string>();
  const enqueue = (id: string) => {
    if (waiting.has(id)) return;
    waiting.add(id);
    background.run('a job', () =>
      queue.add(async () => {
        await leases.ifFree(`job ${id}`, (lost) => work(id, lost)).finally(() => waiting.delete(id));
      }),
    );
  };
  const takeUp = async () => {
    for (const { id } of await openJobs(store)) enqueue(id);
  };
  return { enqueue, takeUp };
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
  // Another process may have finished it meanwhile.
  const found = await jobs.get(id);
  if (ending.aborted || found === undefined || !isOpen(found)) return;
  let job: Job | undefined = await jobs.update(id, (current) => ({
    ...current,
    status: 'processing',
    startedAt: current.startedAt ?? clock(),
  }));
  const step = job && (await stepOf(job));
  while (job !== undefined && step !== undefined) {
    if (clock() - (job.startedAt ?? 0) > LONGEST)
      throw new JobFault('The job took longer than two hours.', { name: 'long' });
    const isMore = await step(job);
    if (!isMore) {
      await jobs.update(id, (current) => ({ ...current, status: 'completed' }));
      return;
    }
    if (ending.aborted) return;
    // Logins come between two steps.
    await new Promise((resolve) => setImmediate(resolve));
    job = await jobs.get(id);
  }
}
