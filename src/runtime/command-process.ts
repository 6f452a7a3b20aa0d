// What a command has of the process that it runs in.
import type { Readable, Writable } from 'node:stream';

/** `process` itself, or what stands for it: commands read and write nothing else of their process. */
export interface CommandProcess {
  env: Readonly<Record<string, string | undefined>>;
  stdin: Readable;
  /** For the result alone. */
  stdout: Writable;
  stderr: Writable;
  exitCode?: NodeJS.Process['exitCode'];
  /** Ends the process, whatever still goes on in it. */
  exit(code: number): void;
}

/** Prints a line of the result. */
export function print({ stdout }: Pick<CommandProcess, 'stdout'>, line: string): void {
  stdout.write(`${line}\n`);
}
