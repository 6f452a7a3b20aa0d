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
  stdout.write(`${visible(line)}\n`);
}

/**
 * Returns a text as a terminal may show it: names in files and records may be a stranger's, so characters that a terminal
 * would obey, or that change the direction of what follows, are written as in JSON. Line feeds and tabs remain.
 */
export function visible(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu, (one) => {
    return `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
