// Runs subcommands of `gatehouse` in this process, because a new process needs half a second of processor time to load
// them. Tests that use `process.ts` cover that `src/cli.ts` runs them in a process.
import { Readable, Writable } from 'node:stream';
import { runCommand as run } from '../../src/commands/index.ts';

interface CommandOptions {
  /** The directory that relative paths in arguments and settings start from. */
  cwd: string;
  args: readonly string[];
  env?: Record<string, string>;
  /** Standard input. */
  input?: string;
}

/** Runs a command to its end. Only one at a time, because a process has one working directory. */
export async function runCommand({ cwd, args, env = {}, input = '' }: CommandOptions) {
  const [stdout, stderr] = [collect(), collect()];
  let ended: number | undefined;
  const host = {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdin: Readable.from([input]),
    stdout: stdout.stream,
    stderr: stderr.stream,
    exitCode: 0,
    exit: (code: number) => {
      ended = code;
    },
  };
  const before = process.cwd();
  process.chdir(cwd);
  try {
    await run(args, host);
  } finally {
    process.chdir(before);
  }
  return { code: ended ?? host.exitCode, stdout: stdout.text(), stderr: stderr.text() };
}

function collect() {
  let all = '';
  const stream = new Writable({
    decodeStrings: false,
    write: (text, _encoding, done) => {
      all += String(text);
      done();
    },
  });
  return { stream, text: () => all };
}
