// The interface of a command to the process that it runs in.
import type { Readable, Writable } from 'node:stream';

/** `process` itself, or a substitute: commands use nothing else of their process. */
export interface CommandProcess {
  env: Readonly<Record<string, string | undefined>>;
  stdin: Readable;
  /** Only for the result. */
  stdout: Writable;
  stderr: Writable;
  exitCode?: NodeJS.Process['exitCode'];
  /** Ends the process, whatever still runs in it. */
  exit(code: number): void;
}

export function print({ stdout }: Pick<CommandProcess, 'stdout'>, line: string): void {
  stdout.write(`${line}\n`);
}
