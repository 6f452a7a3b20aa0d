// The messages between a script thread and this process.
import type { ScriptFailure, ScriptLimits } from './limits.ts';

/** The code that is put around scripts of a kind: the name of a file in `sandbox/`. */
export type Wrapper = 'action' | 'rule';

export interface ThreadData {
  wasmModule: WebAssembly.Module;
  limits: ScriptLimits;
  /** Arguments that wrappers are called with again and again. What depends on them is built once, when a sandbox is made. */
  prepared: readonly string[];
  /**
   * Set in a thread that several scripts share: the number of the run that uses it now (0: none), and how often that
   * has changed. It is shared memory, which the process reads while the thread is busy. Scripts cannot reach it.
   */
  entered?: Int32Array | undefined;
}

/**
 * A file of a package, with the modules that it requires: for each name the key of the file; empty for a module that
 * has no code here.
 */
export interface ModuleFile {
  source: string;
  links: ReadonlyMap<string, string>;
}

/** Files of packages by their paths. The entry with an empty path holds what the script itself requires. */
export type ModuleFiles = Map<string, ModuleFile>;

/** A script to run: arguments and globals as JSON. */
export interface Job {
  source: string;
  around?: Wrapper | undefined;
  entry: string;
  args: string;
  globals: string;
  /** Packages that it may require. */
  files?: ModuleFiles | undefined;
}

/** Results after which the next script begins: lists of commands (`{ method, args }`). */
export interface ContinueCondition {
  /** The methods that the commands may have. */
  methods: readonly string[];
  /** How many commands the list may have. */
  most: number;
}

/** Jobs that run one after the other. @see ScriptRuns */
export interface JobSequence {
  jobs: readonly Job[];
  passing: ContinueCondition;
  /** How much of its time the first job has used, where it was begun before in another thread, milliseconds. */
  spentMs?: number | undefined;
}

interface RunMessage extends JobSequence {
  type: 'run';
  /** The number of the first job's run in the thread, from 1. The other jobs have the numbers after it. */
  run: number;
}

export interface AnswerMessage {
  type: 'answer';
  run: number;
  id: string;
  /** JSON: `error`, or status and headers. */
  head: string;
  content: string | Uint8Array;
}

/** Gives the thread to another owner; it answers `ready`. */
interface TakeMessage extends Pick<ThreadData, 'entered'> {
  type: 'take';
}

/** Ends runs whose outcomes nobody waits for any more. */
export interface DropMessage {
  type: 'drop';
  /** The numbers of the first and the last of them. */
  run: number;
  last: number;
}

export type ToThread = RunMessage | AnswerMessage | TakeMessage | DropMessage;

export interface RequestMessage {
  type: 'request';
  run: number;
  id: string;
  /** JSON that the script may have written itself: not validated yet. */
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
  /**
   * `run`: the next job is running; `wait`: the thread can take another sequence; `make`: it can do so after it has
   * sent `ready`.
   */
  next: 'run' | 'wait' | 'make';
  /** What the thread itself has used of the processor so far, milliseconds. */
  processorMs: number;
}

/** Messages from a thread; `ready`: it can take a run. */
export type FromThread =
  | { type: 'ready'; processorMs: OutcomeMessage['processorMs'] }
  | { type: 'log'; run: number; level: string; text: string }
  | RequestMessage
  | OutcomeMessage;
