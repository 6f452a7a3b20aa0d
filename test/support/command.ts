// Runs the `gatehouse` command's subcommands in this process: one of its own takes half a second of processor time to load
// them anew. That `src/cli.ts` gives them its process is shown by those that run it (`process.ts`).
import { Readable, Writable } from 'node:stream';
import { runCommand as run } from '../../src/commands.ts';

interface CommandOptions {
  /** What paths in arguments and settings are relative to. */
  cwd: string;
  args: readonly string[];
  env?: Record<string, string>;
  /** Standard input. */
  input?: string;
}

/** Runs a command to its end. One at a time: a process has one working directory. */
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
