// What a run of a script may use.
import { LONGEST_SCRIPT } from '../records/script-length.ts';

export interface ScriptLimits {
  /** Time, waiting included, milliseconds. */
  wallMs: number;
  /** Time of the processor, milliseconds. */
  cpuMs: number;
  /** What its thread may use beyond that until it is ended: the thread counts too, but not while the engine's own loops run. */
  graceMs: number;
  /** Memory, bytes; a multiple of 64 KiB, and at least 16 MiB. */
  memoryBytes: number;
  /** The result as JSON, and what it prints, each, bytes. */
  outputBytes: number;
  /** The text of the script, characters. */
  sourceLength: number;
  /** Requests to others. */
  requests: number;
}

export const WASM_PAGE = 65_536;
/** The stack of the engine, of which scripts get a part. Bytes. */
export const STACK_BYTES = 512 * 1024;
/** The memory that a sandbox begins with, of it 0.2 MiB for the script. It grows in steps. Bytes. */
export const FIRST_BYTES = 1.5 * 1024 * 1024;
/** What is little: a sandbox whose memory has become larger is made anew. Bytes. */
export const LITTLE_BYTES = 16 * 1024 * 1024;

/** The limits of the hosted service, where it has them. */
export const SCRIPT_LIMITS: ScriptLimits = {
  wallMs: 20_000,
  cpuMs: 5_000,
  graceMs: 500,
  memoryBytes: 64 * 1024 * 1024,
  outputBytes: 100_000,
  sourceLength: LONGEST_SCRIPT,
  requests: 10,
};

/**
 * Why a run gave no result. `script`: its own error, thrown or called back; `syntax`: it is no JavaScript, or gives no
 * function; `unanswered`: it ended without an answer; `busy`: too many scripts were running; the others name the limit.
 */
export type ScriptFailureKind =
  | 'script'
  | 'syntax'
  | 'unanswered'
  | 'busy'
  | 'wall'
  | 'cpu'
  | 'memory'
  | 'output'
  | 'source'
  | 'requests'
  | 'crashed';

export interface ScriptFailure {
  kind: ScriptFailureKind;
  /** The name of the script's error, such as `UnauthorizedError`. */
  name?: string;
  /** Its code, such as the `user_exists` of a ValidationError. */
  code?: string;
  /** In English; of `script` the script's own words. */
  message: string;
}

/** What a run used. */
export interface ScriptUsage {
  wallMs: number;
  cpuMs: number;
  memoryBytes: number;
  outputBytes: number;
  requests: number;
}

/** A line that a script printed. */
export interface ScriptLine {
  level: string;
  text: string;
}
