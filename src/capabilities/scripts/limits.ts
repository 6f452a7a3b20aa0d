// What a run of a script may use.
import { MAX_SCRIPT_LENGTH } from '../../records/base/script-length.ts';

export interface ScriptLimits {
  /** Elapsed time including waits, milliseconds. */
  wallMs: number;
  /** Processor time, milliseconds. */
  cpuMs: number;
  /**
   * How much longer its thread may use the processor before it is terminated, milliseconds. The thread counts processor
   * time itself, but not while a loop inside the engine runs.
   */
  graceMs: number;
  /** Memory, bytes; a multiple of 64 KiB, and at least 16 MiB. */
  memoryBytes: number;
  /** Largest result as JSON, and largest sum of what it prints, bytes. */
  outputBytes: number;
  /** Longest source, characters. */
  sourceLength: number;
  /** How many requests it may make. */
  requests: number;
}

export const WASM_PAGE = 65_536;
/** The stack of the engine, of which scripts get a part. Bytes. */
export const STACK_BYTES = 512 * 1024;
// docs/understand/decisions/actions-scripts.md#a-sandbox-begins-with-15-mib-of-memory-a-third-of-it-the-stack
/** The memory that a sandbox begins with, about 0.2 MiB of which are free for the script. It grows in steps. Bytes. */
export const INITIAL_MEMORY_BYTES = 1.5 * 1024 * 1024;
/** A sandbox whose memory has grown beyond this is replaced instead of reset. Bytes. */
export const MAX_REUSED_BYTES = 16 * 1024 * 1024;

/** The limits of the hosted service, where it has them. */
export const SCRIPT_LIMITS: ScriptLimits = {
  wallMs: 20_000,
  cpuMs: 5_000,
  graceMs: 500,
  memoryBytes: 64 * 1024 * 1024,
  outputBytes: 100_000,
  sourceLength: MAX_SCRIPT_LENGTH,
  requests: 10,
};

// docs/understand/decisions/actions-scripts.md#a-script-that-ends-without-an-answer-fails-at-once
/**
 * Why a run gave no result. `script`: its own error, thrown or called back; `syntax`: it is no JavaScript, or yields no
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
  /** The code of the script's error, such as `user_exists` of a ValidationError. */
  code?: string;
  /** In English; with `script` the message of the script's own error. */
  message: string;
}

export interface ScriptUsage {
  wallMs: number;
  cpuMs: number;
  memoryBytes: number;
  outputBytes: number;
  requests: number;
}

export interface ScriptLine {
  level: string;
  text: string;
}
