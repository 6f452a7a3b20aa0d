// The tenant's own templates run in a thread, which is ended when one takes too long: the limits of a template language
// hold between two parts of a template, and not within a filter.
// docs/understand/decisions/login-pages.md#the-tenants-own-templates-run-in-a-thread
import { hash } from 'node:crypto';
import { keepLatest } from '../../runtime/latest.ts';
import { requester } from '../../runtime/requester.ts';
import { createTaskThread, type TaskThread } from '../../runtime/task-thread.ts';
import { moduleBeside } from '../../runtime/worker-thread.ts';
import type { LiquidJob } from './liquid-templates.ts';
import type { LiquidAnswer } from './liquid-worker.ts';

export interface TenantLiquid extends Pick<TaskThread<LiquidJob, LiquidAnswer>, 'close' | 'isHeldUp'> {
  /** @throws TemplateFault when it is malformed or exceeds a limit, or when others take too long. */
  render(job: LiquidJob): Promise<string>;
}

interface FailedTemplate {
  /** Names it for those who read the log. */
  name: string;
  source: string;
  fault: string;
}

/** Renders templates in place of which ours are used when they fail. */
export interface ReportingLiquid extends TenantLiquid {
  /** Reports a template that failed and was replaced by ours, each once. */
  report(failed: FailedTemplate): void;
}

/** Adds reports of failed templates, each of which is recorded once. */
export function reportingLiquid(
  liquid: TenantLiquid,
  record: (failed: Omit<FailedTemplate, 'source'>) => void,
): ReportingLiquid {
  const reported = new Map<string, true>();
  return {
    ...liquid,
    report: ({ name, source, fault }) => {
      const key = JSON.stringify([name, hash('sha256', source, 'base64url'), fault]);
      if (!reported.has(key)) record({ name, fault });
      keepLatest(reported, MAX_REMEMBERED, key, true);
    },
  };
}

/** Why a template gave no text, in one sentence for whoever wrote it. */
export class TemplateFault extends Error {}

const LIMITS = {
  maxCpuMs: 500,
  // Templates do not wait, so this only ends what the count of processor time misses.
  maxElapsedMs: 10_000,
  maxWaiting: 200,
  maxWaitMs: 10_000,
  idleMs: 600_000,
  memory: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 },
};
/** A template that took too long is not tried again for so long, milliseconds. */
const REFUSED_MS = 60_000;
/** How many templates are remembered. */
const MAX_REMEMBERED = 200;

const TOO_LONG = 'the template takes too long';

/** Makes the renderer. No thread is started before the first template. */
export function createTenantLiquid(): TenantLiquid {
  const module = moduleBeside(import.meta.url, 'liquid-worker');
  const { run, ...thread } = createTaskThread<LiquidJob, LiquidAnswer>({ ...LIMITS, name: 'liquid', module });
  /** Until when a template is refused, by the hash of its source. */
  const refused = new Map<string, number>();
  const answerTo = async (job: LiquidJob): Promise<LiquidAnswer> => {
    const key = hash('sha256', job.source, 'base64url');
    const isWanted = () => (refused.get(key) ?? 0) <= performance.now();
    if (!isWanted()) return { fault: TOO_LONG };
    // Templates take turns, so that one does not hold up all others; and within one, those for whom it is rendered.
    const origin = { network: key, address: requester().origin.network };
    const outcome = await run(job, { origin, isWanted });
    if (outcome.failure === undefined) return outcome.answer;
    if (outcome.failure === 'busy') return { fault: 'too many templates wait' };
    keepLatest(refused, MAX_REMEMBERED, key, performance.now() + REFUSED_MS);
    return { fault: TOO_LONG };
  };
  return {
    ...thread,
    render: async (job) => {
      const answer = await answerTo(job);
      if ('fault' in answer) throw new TemplateFault(answer.fault);
      return answer.text;
    },
  };
}
