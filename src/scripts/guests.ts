// The runs in a shared thread, seen from this process: their requests and outcomes.
import type { Outbound } from '../http/outbound.ts';
import { countByKey } from './counts.ts';
import type { ScriptLimits } from './limits.ts';
import type { FromThread, OutcomeMessage, RequestMessage, ToThread, Trip } from './messages.ts';
import { isReading, readRequest, type ScriptRequest, scriptRequest } from './requests.ts';
import { beginRun, type Current, endRun, type JobOutcome, outcomeOf, tooLate, usageOf } from './thread.ts';

/** How many scripts share the thread at once: each begins with 1.5 MiB of memory. */
const PLACES = 32;
const PLACES_OF_ONE = PLACES / 2;

/** Failures that show that a script needs more than it may use in a shared thread. */
const NEEDS_MORE: readonly string[] = ['cpu', 'memory', 'crashed'];

/** What became of a job sequence in a shared thread. */
export interface Stay {
  /** Outcomes of the jobs that ended there. */
  outcomes: JobOutcome[];
  /**
   * Set where the remaining jobs are to run in a thread of their own: how much of its time the first of them has used,
   * milliseconds.
   */
  spentMs?: number;
}

/** A job sequence in the thread. */
interface Guest {
  key: string;
  current: Current;
  /** The number of its last run. */
  last: number;
  /** How many requests of the current run have no answer yet. */
  unanswered: number;
  outcomes: JobOutcome[];
  tell(): void;
  done(stay: Stay): void;
}

/** The job sequences in a thread, by the number of their current run. */
export interface Guests {
  isEmpty(): boolean;
  /** Whether the thread may still send messages of a run that was dropped. */
  hasDropped(): boolean;
  hasPlace(key: string): boolean;
  /** @see Shared */
  add(key: string, trip: Trip, tell: () => void): Promise<Stay>;
  /** Handles a message of the thread. */
  hear(message: Exclude<FromThread, { type: 'ready' }>): void;
  /** Moves the sequence of a run to a thread of its own for good: the run keeps the thread from all others. */
  accuse(run: number): void;
  /** Has every sequence run in a thread of its own. */
  leaveAll(): void;
}

export interface GuestsOptions {
  outbound: Outbound;
  limits: ScriptLimits;
  /** Sends a message to the thread. */
  say(message: ToThread): void;
  /**
   * Whether the scripts may make requests. If not, one that does is run elsewhere, and what it used there decides where
   * it runs next.
   */
  mayAsk: boolean;
  /** Called when a sequence has left the thread. */
  onLeft(): void;
}

/** Keeps the sequences of a thread, and ends them. */
function createRegister({ say, onLeft }: GuestsOptions) {
  const guests = new Map<number, Guest>();
  const places = countByKey();
  let hasDropped = false;
  const drop = ({ current: { run }, last }: Guest) => {
    hasDropped = true;
    say({ type: 'drop', run, last });
  };
  const leave = (guest: Guest, stay: Stay) => {
    guests.delete(guest.current.run);
    places.add(guest.key, -1);
    guest.done(stay);
    onLeft();
  };
  const sendAway = (guest: Guest) => {
    const { began, wall, over } = guest.current;
    clearTimeout(wall);
    over?.abort();
    drop(guest);
    leave(guest, { outcomes: guest.outcomes, spentMs: performance.now() - began });
  };
  return {
    guests,
    hasPlace: (key: string) => guests.size < PLACES && places.of(key) < PLACES_OF_ONE,
    /** Takes a place for a key; {@link hasPlace} says whether there is one. */
    enter: (key: string) => places.add(key, 1),
    drop,
    leave,
    sendAway,
    /** Dismisses a sequence that must not run in a shared thread again. */
    refuse: (guest: Guest) => {
      guest.tell();
      sendAway(guest);
    },
    hasDropped: () => hasDropped,
  };
}

/** Makes the runs of a thread; there are none at first. */
export function createGuests(options: GuestsOptions): Guests {
  const { say } = options;
  const { guests, hasPlace, enter, drop, leave, sendAway, refuse, hasDropped } = createRegister(options);
  let last = 0;
  const begin = (guest: Omit<Guest, 'current' | 'unanswered'>, run: number) => {
    const late = () => {
      drop(begun);
      leave(begun, { outcomes: [...begun.outcomes, lateOutcome(begun, options)] });
    };
    const begun: Guest = Object.assign(guest, {
      current: beginRun(run, late, options.limits),
      unanswered: 0,
    });
    guests.set(run, begun);
  };
  const ask = async (guest: Guest, message: RequestMessage) => {
    if (!options.mayAsk) return sendAway(guest);
    const asked = readRequest(message);
    if (asked === undefined || !isReading(asked)) return refuse(guest);
    const { current } = guest;
    const answer = await answered(guest, asked, options);
    if (guest.current !== current || guests.get(current.run) !== guest) return;
    // The AbortController is dropped once it has nothing to abort: aborting costs more than a request.
    if (--guest.unanswered === 0) current.over = undefined;
    say({ type: 'answer', run: current.run, id: message.id, ...answer });
  };
  const finish = (guest: Guest, message: OutcomeMessage) => {
    if (NEEDS_MORE.includes(message.failure?.kind ?? '')) return refuse(guest);
    guest.outcomes.push(
      endRun(guest.current, outcomeOf(message), { ...usageOf(message), wallMs: message.wallMs }),
    );
    if (message.next !== 'run') return leave(guest, { outcomes: guest.outcomes });
    guests.delete(message.run);
    begin(guest, message.run + 1);
  };
  return {
    isEmpty: () => guests.size === 0,
    hasDropped,
    hasPlace,
    add: (key, trip, tell) => {
      const { promise, resolve: done } = Promise.withResolvers<Stay>();
      const run = last + 1;
      last += trip.jobs.length;
      enter(key);
      begin({ key, last, outcomes: [], tell, done }, run);
      say({ type: 'run', run, ...trip });
      return promise;
    },
    hear: (message) => {
      const guest = guests.get(message.run);
      if (guest === undefined) return;
      if (message.type === 'outcome') finish(guest, message);
      else if (message.type === 'request') void ask(guest, message);
      else guest.current.printed.push({ level: message.level, text: message.text });
    },
    accuse: (run) => [...guests.values()].find(hasRun(run))?.tell(),
    leaveAll: () => {
      for (const guest of guests.values()) sendAway(guest);
    },
  };
}

/** Whether a sequence includes a run. Messages about the runs before it may not have arrived yet. */
const hasRun =
  (run: number) =>
  ({ current, last }: Guest): boolean =>
    current.run <= run && run <= last;

/** Makes a request of a script and returns its answer. */
function answered(guest: Guest, asked: ScriptRequest, { outbound, limits }: GuestsOptions) {
  const { current } = guest;
  current.requests++;
  guest.unanswered++;
  current.over ??= new AbortController();
  return scriptRequest(outbound, asked, current.over.signal, limits.wallMs);
}

/** The outcome of a run that did not answer in time. */
function lateOutcome({ current }: Guest, { limits }: GuestsOptions): JobOutcome {
  const used = { cpuMs: 0, memoryBytes: 0, outputBytes: 0, requests: current.requests };
  return endRun(current, { failure: tooLate(limits) }, used);
}
