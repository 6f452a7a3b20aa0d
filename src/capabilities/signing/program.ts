// Runs a program that signs, without a shell, so that its arguments are never read as a command.
import { spawn } from 'node:child_process';
import type { HiddenSettings } from './place.ts';

interface ProgramRequest extends HiddenSettings {
  program: string;
  args: readonly string[];
  input?: Uint8Array;
  /** Additional environment. The program also gets that of this process, without what is hidden. */
  env?: Readonly<Record<string, string>>;
  signal: AbortSignal;
}

/** Limits of what is read of standard output and of standard error, bytes. */
const MAX_OUTPUT_BYTES = 1024 * 1024;
const MAX_ERROR_OUTPUT = 500;

/**
 * Runs a program to its end.
 * @returns what it wrote to standard output.
 * @throws Error with its name and the beginning of its standard error, when it fails, takes too long or writes too
 * much.
 */
export function runProgram({
  program,
  args,
  input,
  env = {},
  hidden,
  signal,
}: ProgramRequest): Promise<Buffer> {
  const environment = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !hidden.includes(name)),
  );
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      shell: false,
      windowsHide: true,
      env: { ...environment, ...env },
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
