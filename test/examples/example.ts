// Runs an example of `examples/` as its README says, with `npm start`, against a server of this process.
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { parse } from 'yaml';
import { readTenant } from '../../src/tenant/load.ts';
import { freePort } from '../support/free-port.ts';
import { environment } from '../support/process.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { every, until } from '../support/wait-until.ts';
import { EXAMPLES, WORKSPACE } from './workspace.ts';

/** The user of every example's tenant. */
export const ADA = { email: 'ada@example.test', password: 'Gatehouse-1' };

/** An example that runs. */
export interface Example {
  server: TestServer;
  /** Where its application is. */
  origin: string;
  /** Where its API is, if it has one. */
  apiOrigin: string;
  /** Its config/tenant.yaml. */
  tenant: ExampleTenant;
  folder: string;
  /** What its processes have printed. */
  output(): string;
  stop(): Promise<void>;
}

/** What a test needs of the first application of a tenant file. */
interface ExampleTenant {
  clients: { client_id: string; client_secret?: string; callbacks: string[] }[];
  resourceServers: { identifier: string; token_lifetime?: number }[];
  clientGrants: { audience: string }[];
}

export interface ExampleOptions {
  /** Commands that run before it, in its folder, as at its first start. */
  setup?: string[][];
  /** Its command, by default `npm start`. */
  command?: string[];
  /** Whether an application answers at its origin; by default one does, and is waited for. */
  listens?: boolean;
  /** Whether the API is a part of the application, at the same port. */
  hasApiWithin?: boolean;
  /** Other examples that are copied with it, for the same addresses: programs that the test runs with {@link run}. */
  beside?: string[];
  /** Changes its tenant, for what a test cannot wait for. */
  adapt?: (tenant: ExampleTenant) => void;
}

/**
 * Starts an example and its server, and waits until the application answers. The example is copied beside its
 * installed packages. In the copy, the addresses of the README are those of this run: Gatehouse at localhost:3000,
 * the application at port 4000, its API at 4001.
 */
export async function startExample(
  name: string,
  {
    setup = [],
    command = ['npm', 'start'],
    listens = true,
    hasApiWithin = false,
    beside = [],
    adapt,
  }: ExampleOptions = {},
): Promise<Example> {
  const folder = join(WORKSPACE, name);
  const [serverPort, port, apiPort] = [await freePort(), await freePort(), await freePort()];
  for (const one of [name, ...beside]) {
    const copy = join(WORKSPACE, one);
    await empty(copy);
    await cp(join(EXAMPLES, one), copy, { recursive: true, force: true });
    await rewrite(copy, (text) =>
      text
        .replaceAll('localhost:3000', `localhost:${serverPort}`)
        .replaceAll(/\b4000\b/g, String(port))
        .replaceAll(/\b4001\b/g, String(apiPort)),
    );
  }
  const tenant = parse(await readFile(join(folder, 'config/tenant.yaml'), 'utf8'));
  const unknown = readTenant(tenant).warnings.filter((line) => line.includes('is not known here'));
  if (unknown.length > 0) throw new Error(`${name}/config/tenant.yaml: ${unknown.join(', ')}`);
  adapt?.(tenant);
  const server = await startServer({ tenant, env: { PORT: String(serverPort) } });
  await mkdir(join(folder, 'data/tls'), { recursive: true });
  await writeFile(join(folder, 'data/tls/ca.pem'), server.ca);

  for (const [program = '', ...args] of setup) {
    await promisify(execFile)(program, args, { cwd: folder, env: environment({ CI: 'true' }) });
  }
  const program = run(folder, command);
  const { output } = program;
  const origin = `http://localhost:${port}`;
  const stop = async () => {
    await program.stop();
    await server.stop();
  };
  const answers = async () => {
    if (program.hasEnded()) throw new Error(`${name} ended:\n${output()}`);
    return fetch(origin, { redirect: 'manual' }).then(
      async (response) => {
        await response.body?.cancel();
        return true;
      },
      () => false,
    );
  };
  if (listens) {
    await until(answers, every(200)).catch(async (error: unknown) => {
      await stop();
      throw new Error(`${name} does not answer:\n${output()}`, { cause: error });
    });
  }
  const apiOrigin = hasApiWithin ? origin : `http://localhost:${apiPort}`;
  return { server, origin, apiOrigin, tenant, folder, output, stop };
}

/** A program that runs. */
export interface Program {
  /** What its processes have printed. */
  output(): string;
  /** Writes a line to its standard input. */
  tell(line: string): void;
  hasEnded(): boolean;
  /** Waits until it ends. @returns its exit code, `null` if it was stopped */
  ended: Promise<number | null>;
  stop(): Promise<void>;
}

/** Runs a program of an example, with its processes in a group of their own. */
export function run(
  folder: string,
  [file = '', ...args]: string[],
  env: Record<string, string> = {},
): Program {
  const child = spawn(file, args, { cwd: folder, detached: true, env: environment({ CI: 'true', ...env }) });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += String(chunk)));
  // Its output is complete then.
  const ended = once(child, 'close').then(() => child.exitCode);
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const stop = async () => {
    // The whole process group: `npm start` has processes of its own.
    if (!hasEnded()) process.kill(-(child.pid ?? 0), 'SIGKILL');
    await ended;
  };
  const tell = (line: string) => void child.stdin.write(`${line}\n`);
  return { output: () => output, tell, hasEnded, ended, stop };
}

/** Removes what an earlier run has left, except packages. */
async function empty(folder: string): Promise<void> {
  for (const entry of await readdir(folder).catch(() => [])) {
    if (!['node_modules', '.venv'].includes(entry)) await rm(join(folder, entry), { recursive: true });
  }
}

/** Rewrites the text files of a folder that have something to replace. */
export async function rewrite(folder: string, replaced: (text: string) => string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || /node_modules|\.(?:png|ico|jar)$/.test(relative(folder, path))) continue;
    const text = await readFile(path, 'utf8');
    const now = replaced(text);
    if (now !== text) await writeFile(path, now);
  }
}

/** Logs in on the hosted page. */
export async function logInAs(page: Page, { email, password } = ADA): Promise<void> {
  await page.getByLabel('Email address').fill(email);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Continue', exact: true }).click();
}

/** Returns a button or link of an example by its text. */
export const control = (page: Page, name: string) =>
  page.getByRole('button', { name, exact: true }).or(page.getByRole('link', { name, exact: true }));

/** Returns whether a command succeeds, which shows whether its program is installed. */
export function isThere([program = '', ...args]: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
