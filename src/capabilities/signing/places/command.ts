// SIGNING=command: signs with a program of the operator (docs/do/keys.md "A program").
import { spawn } from 'node:child_process';
import { z } from 'zod';
import { type KeyPlace, keySetOf, signingPlace } from '../place.ts';

export const command = signingPlace({
  name: 'command',
  variables: {
    SIGNING_COMMAND: z.string().meta({
      description: 'with `SIGNING=command`: the program and its first arguments, separated by spaces',
    }),
  },
  address: undefined,
  open: ({ SIGNING_COMMAND: text }, { hidden }) =>
    signingCommand(
      text.split(' ').filter((part) => part !== ''),
      hidden,
    ),
});

/** @param hidden names of variables that the program does not get. */
function signingCommand(words: readonly string[], hidden: readonly string[]): KeyPlace {
  const [program = '', ...first] = words;
  return {
    keys: async (signal) => {
      const keys = keySetOf(await runProgram({ program, args: [...first, 'keys'], hidden, signal }));
      // The kid becomes an argument of the program, which would take it for an option.
      const option = keys.find(({ kid }) => typeof kid === 'string' && kid.startsWith('-'));
      if (option !== undefined) throw new Error(`the kid ${String(option.kid)} begins with a hyphen`);
      return keys;
    },
    sign: ({ alg, kid, data }, signal) =>
      runProgram({ program, args: [...first, 'sign', alg, kid], input: data, hidden, signal }),
  };
}

interface ProgramRequest {
  program: string;
  args: readonly string[];
  input?: Uint8Array;
  /** Names of variables that the program does not get. */
  hidden: readonly string[];
  signal: AbortSignal;
}

/** Limits of what is read of standard output and of standard error, bytes. */
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_ERROR_OUTPUT = 500;

/**
 * Runs a program to its end, without a shell, so that its arguments are never read as a command.
 * @returns what it wrote to standard output.
 * @throws Error with its name and the beginning of its standard error, when it fails, takes too long or writes too
 * much.
 */
function runProgram({ program, args, input, hidden, signal }: ProgramRequest): Promise<Buffer> {
  const environment = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !hidden.includes(name)),
  );
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      shell: false,
      windowsHide: true,
      env: environment,
      stdio: ['pipe', 'pipe', 'pipe'],
      signal,
      killSignal: 'SIGKILL',
    });
    const output: Buffer[] = [];
    let size = 0;
    let errorOutput = '';
    const fail = (reason: string, cause?: unknown) => {
      child.kill('SIGKILL');
      reject(new Error(`${program}: ${reason}`, cause === undefined ? undefined : { cause }));
    };
    child.once('error', (cause) => fail(signal.aborted ? 'it took too long' : cause.message, cause));
    // A program that ended before it read its input is reported by its exit.
    child.stdin.on('error', () => undefined);
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > MAX_OUTPUT_BYTES) fail('its answer is too long');
      else output.push(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      if (errorOutput.length < MAX_ERROR_OUTPUT) errorOutput += chunk.toString('utf8', 0, MAX_ERROR_OUTPUT);
    });
    child.once('close', (code, killed) => {
      if (code === 0) resolve(Buffer.concat(output));
      else fail(`it ended with ${code ?? killed}: ${errorOutput.slice(0, MAX_ERROR_OUTPUT).trim()}`);
    });
    child.stdin.end(input);
  });
}
