// Those who share a thread, seen from this process: what they ask for, and what becomes of them.
import type { Outbound } from '../http/outbound.ts';
import { countByKey } from './counts.ts';
import type { ScriptLimits } from './limits.ts';
import type { FromThread, OutcomeMessage, RequestMessage, ToThread, Trip } from './messages.ts';
import { isReading, readRequest, type ScriptRequest, scriptRequest } from './requests.ts';
import { beginRun, type Current, endRun, type JobOutcome, outcomeOf, tooLate, usageOf } from './thread.ts';

/** Scripts at once: each has 1.5 MiB of memory to begin with. */
const PLACES = 32;
const PLACES_OF_ONE = PLACES / 2;

/** How one fails that needs more than it may have here. */
const NEEDS_MORE: readonly string[] = ['cpu', 'memory', 'crashed'];

/** What became of scripts that ran beside others. */
export interface Stay {
  /** Of those that ended there. */
  outcomes: JobOutcome[];
  /** There where the others are to be run elsewhere: what the first of them has had of its time, milliseconds. */
  spentMs?: number;
}

/** Scripts that run one after the other. */
interface Guest {
  key: string;
  current: Current;
  /** The number of the last one's run. */
  last: number;
  /** Requests of the current one that have no answer. */
  unanswered: number;
  outcomes: JobOutcome[];
  tell(): void;
  done(stay: Stay): void;
}

/** Who is in a thread, by the number of the run of the moment. */
export interface Guests {
  isEmpty(): boolean;
  /** Whether the thread may still say something of a run that nobody waits for. */
  hasDropped(): boolean;
  hasPlace(key: string): boolean;
  /** @see Shared */
  add(key: string, trip: Trip, tell: () => void): Promise<Stay>;
  /** What the thread says of one. */
  hear(message: Exclude<FromThread, { type: 'ready' }>): void;
  /** One is in the way of all others. */
  accuse(run: number): void;
  /** All are to be run by themselves. */
  leaveAll(): void;
}

export interface GuestsOptions {
  outbound: Outbound;
  limits: ScriptLimits;
  /** To the thread. */
  say(message: ToThread): void;
  /** Whether they may make requests; otherwise one that does is run elsewhere, and known by that. */
  mayAsk: boolean;
  /** One has left. */
  onLeft(): void;
}

/** Those who are there, and how they leave. */
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
    /** One comes, in a place that there is. */
    enter: (key: string) => places.add(key, 1),
    drop,
    leave,
    sendAway,
    /** It does not belong here. */
    refuse: (guest: Guest) => {
      guest.tell();
      sendAway(guest);
    },
    hasDropped: () => hasDropped,
  };
}

/** Nobody yet. */
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
    // To abort what has ended costs more than a request.
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

/** Whether a run is theirs: what the thread said of those before it may not have been heard. */
const hasRun =
  (run: number) =>
  ({ current, last }: Guest): boolean =>
    current.run <= run && run <= last;

/** The answer to a request. */
function answered(guest: Guest, asked: ScriptRequest, { outbound, limits }: GuestsOptions) {
  const { current } = guest;
  current.requests++;
  guest.unanswered++;
  current.over ??= new AbortController();
  return scriptRequest(outbound, asked, current.over.signal, limits.wallMs);
}

/** What became of one that did not answer in time. */
function lateOutcome({ current }: Guest, { limits }: GuestsOptions): JobOutcome {
  const used = { cpuMs: 0, memoryBytes: 0, outputBytes: 0, requests: current.requests };
  return endRun(current, { failure: tooLate(limits) }, used);
}
