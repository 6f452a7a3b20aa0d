// The cost of `gatehouse move in`: a tenant with linked, social and phone users, hashes, roles and memberships, moved into an
// empty embedded store without a server and with one, and a second time. Run: node bench/move.ts [users …]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { runCommand } from '../src/commands/index.ts';
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

async function run({ args, dataDir }: Task): Promise<void> {
  let told = '';
  const stdout = nothing();
  stdout._write = (text, _encoding, done) => {
    told += String(text);
    done();
  };
  const env = { ...process.env, DATA_DIR: dataDir, TENANT_FILE: join(dataDir, '../tenant.yaml'), PORT: '0' };
  const host = {
    env: { ...env, LOG_LEVEL: 'warn' },
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
async function serve(dataDir: string): Promise<() => Promise<Usage>> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify({ args: ['start'], dataDir })]);
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

async function measure(users: number, row: (cells: (string | number)[]) => void): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-bench-move-'));
  const file = (name: string) => join(folder, name);
  try {
    await writeFile(file('tenant.yaml'), TENANT);
    await writeLines(file('users.ndjson'), users, (n) => [userAt(n)]);
    await writeLines(file('hashes.ndjson'), users, (n) => [secretAt(n) ?? []].flat());
    await writeLines(file('memberships.ndjson'), users, accessAt);
    const files = ['users', 'hashes', 'memberships'].flatMap((name) => [`--${name}`, file(`${name}.ndjson`)]);
    const moveIn = ['move', 'in', file('tenant.yaml'), ...files, '--refused', file('refused')];
    const one = async (what: string, dataDir: string, isServed: boolean) => {
      const end = isServed ? await serve(dataDir) : undefined;
      const { usage: used, told } = await runAlone({ args: moveIn, dataDir });
      const served = await end?.();
      if (!told.includes(`${users} users`)) throw new Error(told);
      const { seconds, cpu, peak } = used;
      const { size } = await stat(join(dataDir, 'store/gatehouse.db'));
      row([
        users,
        what,
        seconds.toFixed(0),
        Math.round(users / seconds),
        (((cpu + (served?.cpu ?? 0)) / users) * 1000).toFixed(2),
        `${Math.round(peak)}${served === undefined ? '' : ` and ${Math.round(served.peak)}`}`,
        Math.round(size / 2 ** 20),
      ]);
    };
    await one('without a server', file('alone'), false);
    await one('again', file('alone'), false);
    await one('with a server', file('served'), true);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const [given] = process.argv.slice(2);
if (given?.startsWith('{') === true) await run(JSON.parse(given) as Task);
else {
  const counts = process.argv.slice(2).map(Number);
  console.log(`${cpus().length} processors, Node.js ${process.version}`);
  console.log(
    '| users | move in | s | users a second | processor ms a user | peak memory, MiB | store, MiB |',
  );
  console.log('| --- | --- | --- | --- | --- | --- | --- |');
  for (const users of counts.length > 0 ? counts : [20_000, 200_000])
    await measure(users, (cells) => console.log(`| ${cells.join(' | ')} |`));
}
