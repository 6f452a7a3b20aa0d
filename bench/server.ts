// The servers that are measured: started as separate processes, and accessed by plain HTTP so that TLS hides nothing.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** The headers that a TLS proxy would add. */
export const PROXIED = { 'x-forwarded-proto': 'https' };

/** Returns the settings of a server whose tenant file and data are in a directory. */
export const proxiedEnvironment = (directory: string) => ({
  PORT: '0',
  BASE_URL: 'https://bench.example.test',
  TLS: 'proxy',
  TRUSTED_PROXIES: '127.0.0.1',
  TENANT_FILE: join(directory, 'tenant.yaml'),
  DATA_DIR: join(directory, 'data'),
  LOG_LEVEL: 'info',
});

/** A server in a separate process. */
export interface Started {
  child: ChildProcess;
  url: string;
  facts: Record<string, unknown>;
  milliseconds: number;
}

/** Starts a server and waits until it reports its address. */
export async function start(file: string, env: Record<string, string>): Promise<Started> {
  const began = performance.now();
  // The same as in `npm start`.
  const child = spawn(process.execPath, ['--max-semi-space-size=32', file], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const facts = JSON.parse(line) as Record<string, unknown>;
    if (typeof facts.url !== 'string' || (facts.msg !== undefined && facts.msg !== 'listening')) continue;
    child.stdout?.resume();
    // Ends the server even if the benchmark fails.
    process.once('exit', () => child.kill('SIGKILL'));
    return { child, url: facts.url, facts, milliseconds: performance.now() - began };
  }
  throw new Error(`${file} ended before it listened`);
}

/** Stops a server and waits for its end. */
export async function stop({ child }: Started): Promise<void> {
  child.kill('SIGTERM');
  await once(child, 'exit');
}

/** Returns where the server listens; its public address is that of a proxy. */
export const local = ({ facts }: Started) => `http://127.0.0.1:${String(facts.port)}`;

/** Returns the processor time so far in nanoseconds, of the main thread and of all threads. */
export function processorTime(pid: number) {
  const of = (thread: string) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
  const all = readdirSync(`/proc/${pid}/task`).map(of);
  return { main: of(String(pid)), all: all.reduce((sum, one) => sum + one, 0) };
}

/** Returns the median. */
export const median = (values: number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
