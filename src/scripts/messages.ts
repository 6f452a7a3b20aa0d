// What a thread of the sandbox and this process say to each other.
import type { ScriptFailure, ScriptLimits } from './limits.ts';

/** What is around scripts of a kind, in a file of that name in `sandbox/`. */
export type Wrapper = 'action' | 'rule';

export interface ThreadData {
  wasmModule: WebAssembly.Module;
  limits: ScriptLimits;
  /** What wrappers are given when they are made: what they are called with again and again, so that it is ready. */
  prepared: readonly string[];
  /**
   * Where several run in one thread: which of them uses it now (0: none), and how often that has changed. Shared with the
   * process, which reads it while the thread is busy; scripts know nothing of it.
   */
  entered?: Int32Array | undefined;
}

/** A file of a package, with what it requires: the key of another file by name; empty for what is nothing here. */
export interface ModuleFile {
  source: string;
  links: ReadonlyMap<string, string>;
}

/** Files of packages by their paths; the empty one is for what the script itself requires. */
export type ModuleFiles = Map<string, ModuleFile>;

/** A script to run: arguments and globals as JSON. */
export interface Job {
  source: string;
  /** Runs in place of a source. */
  around?: Wrapper | undefined;
  entry: string;
  args: string;
  globals: string;
  /** Packages that it may require. */
  files?: ModuleFiles | undefined;
}

/** The results with which the next script begins: lists of commands (`{ method, args }`). */
export interface Passing {
  /** Of which all of them are. */
  methods: readonly string[];
  /** How many there are at most. */
  most: number;
}

/** Scripts that are to run, one after the other. @see ScriptRuns */
export interface Trip {
  jobs: readonly Job[];
  passing: Passing;
  /** What the first of them has had of its time where it was begun before, milliseconds. */
  spentMs?: number | undefined;
}

interface RunMessage extends Trip {
  type: 'run';
  /** The number of the first one's run in the thread, from 1; the others count on. */
  run: number;
}

/** The answer to a request of the script. */
export interface AnswerMessage {
  type: 'answer';
  run: number;
  id: string;
  /** As JSON: `error`, or status and headers. */
  head: string;
  content: string | Uint8Array;
}

/** To one that others have had, which says that it is ready. */
interface TakeMessage extends Pick<ThreadData, 'entered'> {
  type: 'take';
}

/** Nobody waits for the outcomes of runs any more. */
export interface DropMessage {
  type: 'drop';
  /** The first and the last of them. */
  run: number;
  last: number;
}

/** To the thread. */
export type ToThread = RunMessage | AnswerMessage | TakeMessage | DropMessage;

/** A request that a script makes. */
export interface RequestMessage {
  type: 'request';
  run: number;
  id: string;
  /** As JSON, written by the script: anything. */
  head: string;
  body: string | Uint8Array;
}

export interface OutcomeMessage {
  type: 'outcome';
  run: number;
  /** The result as JSON. */
  result?: string;
  failure?: ScriptFailure;
  cpuMs: number;
  /** Since it began in the thread, milliseconds. */
  wallMs: number;
  memoryBytes: number;
  outputBytes: number;
  requests: number;
  /** `run`: the next job is running; `wait`: the thread can take others; `make`: it can when it says that it is ready. */
  next: 'run' | 'wait' | 'make';
  /** What the thread itself has used of the processor so far, milliseconds. */
  processorMs: number;
}

/** From the thread; `ready`: it can take a run. */
export type FromThread =
  | { type: 'ready'; processorMs: OutcomeMessage['processorMs'] }
  | { type: 'log'; run: number; level: string; text: string }
  | RequestMessage
  | OutcomeMessage;
