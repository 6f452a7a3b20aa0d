// The runs in a shared thread, seen from this process: their requests and outcomes.
import type { Outbound } from '../../http/outbound/outbound.ts';
import type { ScriptLimits } from './limits.ts';
import { countByKey, isSafe, readRequest, type ScriptRequest, scriptRequest } from './requests.ts';
import type {
  FromThread,
  JobSequence,
  OutcomeMessage,
  RequestMessage,
  ToThread,
} from './scripts-messages.ts';
import {
  beginRun,
  type CurrentRun,
  endRun,
  type JobOutcome,
  outcomeOf,
  tooLate,
  usageOf,
} from './threads.ts';

/** How many scripts share the thread at once: each begins with 1.5 MiB of memory. */
const PLACES = 32;
const PLACES_PER_KEY = PLACES / 2;

/** Failures that show that a script needs more than it may use in a shared thread. */
const NEEDS_MORE: readonly string[] = ['cpu', 'memory', 'crashed'];

export interface SharedOutcome {
  outcomes: JobOutcome[];
  /**
   * Set where the remaining jobs are to run in a thread of their own: how much of its time the first of them has used,
   * milliseconds.
   */
  spentMs?: number;
}

interface SharedSequence {
  key: string;
  current: CurrentRun;
  /** The number of its last run. */
  last: number;
  /** How many requests of the current run have no answer yet. */
  unanswered: number;
  outcomes: JobOutcome[];
  onRefused(): void;
  done(outcome: SharedOutcome): void;
}

/** The job sequences in a thread, by the number of their current run. */
export interface SharedRuns {
  isEmpty(): boolean;
  /** Whether the thread may still send messages of a run that was dropped. */
  hasDropped(): boolean;
  hasPlace(key: string): boolean;
  /** @see Shared */
  add(key: string, sequence: JobSequence, onRefused: () => void): Promise<SharedOutcome>;
  receive(message: Exclude<FromThread, { type: 'ready' }>): void;
  /** Moves the sequence of a run to a thread of its own for good: the run keeps the thread from all others. */
  refuseRun(run: number): void;
  /** Has every sequence run in a thread of its own. */
  dismissAll(): void;
}

export interface SharedRunsOptions {
  outbound: Outbound;
  limits: ScriptLimits;
  send(message: ToThread): void;
  /**
   * Whether the scripts may make requests. If not, one that does is run elsewhere, and what it used there decides where
   * it runs next.
   */
  mayAsk: boolean;
  /** Called when a sequence has left the thread. */
  onLeft(): void;
}

/** Keeps the sequences of a thread, and ends them. */
function createRegister({ send, onLeft }: SharedRunsOptions) {
  const sequences = new Map<number, SharedSequence>();
  const places = countByKey();
  let hasDropped = false;
  const drop = ({ current: { run }, last }: SharedSequence) => {
    hasDropped = true;
    send({ type: 'drop', run, last });
  };
  const leave = (shared: SharedSequence, outcome: SharedOutcome) => {
    sequences.delete(shared.current.run);
    places.add(shared.key, -1);
    shared.done(outcome);
    onLeft();
  };
  const dismiss = (shared: SharedSequence) => {
    const { began, wall, over } = shared.current;
    clearTimeout(wall);
    over?.abort();
    drop(shared);
    leave(shared, { outcomes: shared.outcomes, spentMs: performance.now() - began });
  };
  return {
    sequences,
    hasPlace: (key: string) => sequences.size < PLACES && places.of(key) < PLACES_PER_KEY,
    /** Takes a place for a key; {@link hasPlace} says whether there is one. */
    enter: (key: string) => places.add(key, 1),
    drop,
    leave,
    dismiss,
    /** Dismisses a sequence that must not run in a shared thread again. */
    refuse: (shared: SharedSequence) => {
      shared.onRefused();
      dismiss(shared);
    },
    hasDropped: () => hasDropped,
  };
}

/** Makes the runs of a thread; there are none at first. */
export function createSharedRuns(options: SharedRunsOptions): SharedRuns {
  const { send } = options;
  const { sequences, hasPlace, enter, drop, leave, dismiss, refuse, hasDropped } = createRegister(options);
  let last = 0;
  const startRun = (shared: Omit<SharedSequence, 'current' | 'unanswered'>, run: number) => {
    const endLate = () => {
      drop(sequence);
      leave(sequence, { outcomes: [...sequence.outcomes, lateOutcome(sequence, options)] });
    };
    const sequence: SharedSequence = Object.assign(shared, {
      current: beginRun(run, endLate, options.limits),
      unanswered: 0,
    });
    sequences.set(run, sequence);
  };
  const answerRequest = async (shared: SharedSequence, message: RequestMessage) => {
    if (!options.mayAsk) return dismiss(shared);
    const request = readRequest(message);
    if (request === undefined || !isSafe(request)) return refuse(shared);
    const { current } = shared;
    const answer = await answerOf(shared, request, options);
    if (shared.current !== current || sequences.get(current.run) !== shared) return;
    // The AbortController is dropped once it has nothing to abort: aborting costs more than a request.
    if (--shared.unanswered === 0) current.over = undefined;
    send({ type: 'answer', run: current.run, id: message.id, ...answer });
  };
  const finish = (shared: SharedSequence, message: OutcomeMessage) => {
    if (NEEDS_MORE.includes(message.failure?.kind ?? '')) return refuse(shared);
    shared.outcomes.push(
      endRun(shared.current, outcomeOf(message), { ...usageOf(message), wallMs: message.wallMs }),
    );
    if (message.next !== 'run') return leave(shared, { outcomes: shared.outcomes });
    sequences.delete(message.run);
    startRun(shared, message.run + 1);
  };
  return {
    isEmpty: () => sequences.size === 0,
    hasDropped,
    hasPlace,
    add: (key, sequence, onRefused) => {
      const { promise, resolve: done } = Promise.withResolvers<SharedOutcome>();
      const run = last + 1;
      last += sequence.jobs.length;
      enter(key);
      startRun({ key, last, outcomes: [], onRefused, done }, run);
      send({ type: 'run', run, ...sequence });
      return promise;
    },
    receive: (message) => {
      const shared = sequences.get(message.run);
      if (shared === undefined) return;
      if (message.type === 'outcome') finish(shared, message);
      else if (message.type === 'request') void answerRequest(shared, message);
      else shared.current.printed.push({ level: message.level, text: message.text });
    },
    refuseRun: (run) => [...sequences.values()].find(hasRun(run))?.onRefused(),
    dismissAll: () => {
      for (const shared of sequences.values()) dismiss(shared);
    },
  };
}

/** Whether a sequence includes a run. Messages about the runs before it may not have arrived yet. */
const hasRun =
  (run: number) =>
  ({ current, last }: SharedSequence): boolean =>
    current.run <= run && run <= last;

function answerOf(shared: SharedSequence, request: ScriptRequest, { outbound, limits }: SharedRunsOptions) {
  const { current } = shared;
  current.requests++;
  shared.unanswered++;
  current.over ??= new AbortController();
  return scriptRequest(outbound, request, current.over.signal, limits.wallMs);
}

/** The outcome of a run that did not answer in time. */
function lateOutcome({ current }: SharedSequence, { limits }: SharedRunsOptions): JobOutcome {
  const used = { cpuMs: 0, memoryBytes: 0, outputBytes: 0, requests: current.requests };
  return endRun(current, { failure: tooLate(limits) }, used);
}
