// Runs the server as users do: in its own process, accessed over its own TLS.
import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { builtProgram } from './built.ts';
import { fillDataDir } from './template.ts';

export interface ServerProcess {
  child: ChildProcess;
  url: string;
  ca: string;
  /** All lines of its log so far. */
  lines: string[];
  /** Waits for a line of its log; a line that was logged before counts, too. */
  line(is: (line: string) => boolean): Promise<string>;
  /** Sends a signal and waits for the end. @returns the exit code, or the signal that ended it. */
  end(signal: NodeJS.Signals): Promise<number | string>;
}

export const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
export const CLI = fileURLToPath(new URL('../../src/cli.ts', import.meta.url));

interface RunOptions {
  cwd: string;
  env?: Record<string, string>;
  /** The program to run, by default the bundled server. */
  command?: string[];
  /** Whether it runs in its own process group, as commands in a terminal do. */
  detached?: boolean;
  /** Whether it creates its keys and certificates itself, as at any first start. */
  ownKeys?: boolean;
}

/** Returns the environment of a process: what it needs of this one's, and the given variables. */
export function environment(env: Record<string, string> = {}): NodeJS.ProcessEnv {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE, ...env };
}

/** Starts a server and waits until it listens. @throws Error with its output when it ends before. */
export async function runServer({
  cwd,
  env,
  command,
  detached = false,
  ownKeys = false,
}: RunOptions): Promise<ServerProcess> {
  const dataDir = join(cwd, env?.DATA_DIR ?? 'data');
  if (!ownKeys && !existsSync(dataDir)) await fillDataDir(dataDir, true);
  const [file = '', ...args] = command ?? [process.execPath, await builtProgram()];
  const child = spawn(file, args, { cwd, detached, env: environment({ PORT: '0', ...env }) });
  const lines: string[] = [];
  const heard = new EventEmitter();
  let errors = '';
  child.stderr.on('data', (chunk) => {
    errors += String(chunk);
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`ended with ${code} before it listened: ${errors}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      heard.emit('line', line);
      if (line.includes('"msg":"listening"')) resolve(String(JSON.parse(line).url));
    });
  });
  return {
    child,
    url,
    ca: readFileSync(join(dataDir, 'tls/ca.pem'), 'utf8'),
    lines,
    line: async (is) => {
      for (;;) {
        const found = lines.find(is);
        if (found !== undefined) return found;
        await once(heard, 'line');
      }
    },
    end: async (signal) => {
      const ended = once(child, 'exit');
      child.kill(signal);
      const [code, by] = await ended;
      return code ?? by;
    },
  };
}

/** Runs a command to its end. */
export async function runToEnd({ cwd, env, command, input }: RunOptions & { input?: string }) {
  const [file = '', ...args] = command ?? [process.execPath, await builtProgram()];
  const child = spawn(file, args, { cwd, env: environment(env) });
  if (input !== undefined) child.stdin.end(input);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk) => {
    stdout += String(chunk);
  });
  child.stderr.on('data', (chunk) => {
    stderr += String(chunk);
  });
  const [code] = await once(child, 'close');
  return { code: code as number | null, stdout, stderr };
}
