// The cost of `gatehouse move in`: a tenant with linked, social and phone users, hashes, roles and memberships, moved into an
// empty store without a server and with one, and a second time. Run: node bench/move.ts [--postgres] [users …]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../src/commands/index.ts';
import { startCluster } from '../test/support/postgres.ts';
import { accessAt, secretAt, TENANT, userAt, writeLines } from './move-users.ts';

/** What a process has used, from its start: seconds, seconds of all processors, and MiB at its peak. */
interface Usage {
  seconds: number;
  cpu: number;
  peak: number;
}

/** What runs in a process of its own. */
interface Task {
  args: string[];
  dataDir: string;
  /** The store is this database; undefined for the embedded store in `dataDir`. */
  databaseUrl?: string;
}

const usage = (): Usage => {
  const { user, system } = process.cpuUsage();
  return {
    seconds: performance.now() / 1000,
    cpu: (user + system) / 1e6,
    peak: process.resourceUsage().maxRSS / 1024,
  };
};

const nothing = () => new Writable({ write: (_text, _encoding, done) => done() });

async function run({ args, dataDir, databaseUrl }: Task): Promise<void> {
  let told = '';
  const stdout = nothing();
  stdout._write = (text, _encoding, done) => {
    told += String(text);
    done();
  };
  const env = { ...process.env, DATA_DIR: dataDir, TENANT_FILE: join(dataDir, '../tenant.yaml'), PORT: '0' };
  const store = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
  const host = {
    env: { ...env, ...store, LOG_LEVEL: 'warn' },
    stdin: process.stdin,
    stdout,
    stderr: process.stderr,
    exit: (code: number) => process.exit(code),
  };
  process.on('message', () => process.send?.({ usage: usage(), told }));
  await runCommand(args, host);
  process.send?.({ usage: usage(), told });
}

/** Runs a command to its end. */
async function runAlone(task: Task): Promise<{ usage: Usage; told: string }> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(task)]);
  const [answer] = (await once(child, 'message')) as [{ usage: Usage; told: string }];
  child.kill();
  return answer;
}

/** Starts a server. @returns a function that ends it and returns what it used */
async function serve(at: Omit<Task, 'args'>): Promise<() => Promise<Usage>> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify({ args: ['start'], ...at })]);
  await once(child, 'message');
  return async () => {
    child.send('usage');
    const [answer] = (await once(child, 'message')) as [{ usage: Usage }];
    const ended = once(child, 'exit');
    child.kill();
    await ended;
    return answer.usage;
  };
}

/** A store that is empty at first, and its size in bytes. */
interface Place extends Omit<Task, 'args'> {
  size(): Promise<number>;
  /** The seconds of all processors that its database has used in processes of its own. */
  cpu(): number;
  end(): Promise<void>;
}

async function embedded(dataDir: string): Promise<Place> {
  const size = async () => (await stat(join(dataDir, 'store/gatehouse.db'))).size;
  return { dataDir, size, cpu: () => 0, end: async () => undefined };
}

/** A cluster as in production: what it acknowledges is on the disk. */
async function postgres(dataDir: string): Promise<Place> {
  const cluster = await startCluster({ durable: true, onDisk: true });
  const size = async () =>
    Number((await cluster.query("SELECT pg_database_size('postgres')")).rows[0].pg_database_size);
  const [pid = ''] = readFileSync(join(cluster.data, 'postmaster.pid'), 'utf8').split('\n');
  return { dataDir, databaseUrl: cluster.url(), size, cpu: () => cpuOf(pid), end: () => cluster.stop() };
}

/** The clock ticks of a second, on Linux. */
const TICKS = 100;

/** Returns a file of /proc; an empty text where it is not there, because the process has ended or the kernel does not have it. */
function fromProc(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Returns the seconds that a process and its children have used, those that have ended included (proc_pid_stat(5)); only on Linux. */
function cpuOf(pid: string): number {
  const at = `/proc/${pid}`;
  const stat = fromProc(`${at}/stat`);
  if (stat === '') return 0;
  // utime, stime, cutime and cstime; the name before them may have spaces.
  const own = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 15)
    .reduce((sum, ticks) => sum + Number(ticks), 0);
  const children = fromProc(`${at}/task/${pid}/children`).split(' ').filter(Boolean);
  return own / TICKS + children.reduce((sum, child) => sum + cpuOf(child), 0);
}

async function measure(
  users: number,
  place: (dataDir: string) => Promise<Place>,
  row: (cells: (string | number)[]) => void,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-bench-move-'));
  const file = (name: string) => join(folder, name);
  try {
    await writeFile(file('tenant.yaml'), TENANT);
    await writeLines(file('users.ndjson'), users, (n) => [userAt(n)]);
    await writeLines(file('hashes.ndjson'), users, (n) => [secretAt(n) ?? []].flat());
    await writeLines(file('memberships.ndjson'), users, accessAt);
    const files = ['users', 'hashes', 'memberships'].flatMap((name) => [`--${name}`, file(`${name}.ndjson`)]);
    const moveIn = ['move', 'in', file('tenant.yaml'), ...files, '--refused', file('refused')];
    const one = async (what: string, { size, cpu: ofDatabase, end: _, ...at }: Place, isServed: boolean) => {
      const before = ofDatabase();
      const end = isServed ? await serve(at) : undefined;
      const { usage: used, told } = await runAlone({ args: moveIn, ...at });
      const served = await end?.();
      if (!told.includes(`${users} users`)) throw new Error(told);
      const { seconds, cpu, peak } = used;
      row([
        users,
        what,
        seconds.toFixed(0),
        Math.round(users / seconds),
        (((cpu + (served?.cpu ?? 0)) / users) * 1000).toFixed(2),
        (((ofDatabase() - before) / users) * 1000).toFixed(2),
        `${Math.round(peak)}${served === undefined ? '' : ` and ${Math.round(served.peak)}`}`,
        Math.round((await size()) / 2 ** 20),
      ]);
    };
    const alone = await place(file('alone'));
    await one('without a server', alone, false);
    await one('again', alone, false);
    await alone.end();
    const served = await place(file('served'));
    await one('with a server', served, true);
    await served.end();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const [given] = process.argv.slice(2);
if (given?.startsWith('{') === true) await run(JSON.parse(given) as Task);
else {
  const place = given === '--postgres' ? postgres : embedded;
  const counts = process.argv.slice(given === '--postgres' ? 3 : 2).map(Number);
  console.log(`${cpus().length} processors, Node.js ${process.version}`);
  console.log(
    '| users | move in | s | users a second | processor ms a user | of the database | peak memory, MiB | store, MiB |',
  );
  console.log('| --- | --- | --- | --- | --- | --- | --- | --- |');
  for (const users of counts.length > 0 ? counts : [20_000, 200_000])
    await measure(users, place, (cells) => console.log(`| ${cells.join(' | ')} |`));
}
