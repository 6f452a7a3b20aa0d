// The processor time of a request in any server, of all its processes (peers.md). node bench/peer.ts PID[,PID…] URL
// [form body]      REQUESTS=4000 CONNECTIONS=8 HEADERS='{"authorization":"Bearer …"}'
import { readdirSync, readFileSync } from 'node:fs';
import autocannon from 'autocannon';
import { median } from './server.ts';

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
const REQUESTS = Number(process.env.REQUESTS ?? 4_000);
const CONNECTIONS = Number(process.env.CONNECTIONS ?? 8);

const [pids, url, body] = process.argv.slice(2);
if (pids === undefined || url === undefined) throw new Error('node bench/peer.ts PID[,PID…] URL [form body]');
const roots = pids.split(',').map(Number);

const statusOf = (pid: string, name: string) =>
  Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);

/** Returns the processes and all their descendants. */
function family(): string[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const parents = new Map(
    all.flatMap((pid): [string, number][] => {
      try {
        return [[pid, statusOf(pid, 'PPid')]];
      } catch {
        return [];
      }
    }),
  );
  const isOurs = (pid: number): boolean =>
    roots.includes(pid) || (pid > 1 && isOurs(parents.get(String(pid)) ?? 0));
  return all.filter((pid) => isOurs(Number(pid)));
}

/** Returns the processor time so far in microseconds, of all threads of all processes. */
function spent(): number {
  let nanoseconds = 0;
  for (const pid of family())
    for (const thread of readdirSync(`/proc/${pid}/task`))
      nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
  return nanoseconds / 1000;
}

/** Sends all requests. @returns how many were answered, and how many per second. */
async function send(address: string): Promise<{ count: number; rate: number }> {
  const result = await autocannon({
    url: address,
    connections: CONNECTIONS,
    amount: REQUESTS,
    headers: {
      ...(JSON.parse(process.env.HEADERS ?? '{}') as Record<string, string>),
      ...(body !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
    },
    ...(body !== undefined && { method: 'POST', body }),
  });
  if (result.non2xx > 0 || result.errors > 0)
    throw new Error(`${result.non2xx} refused, ${result.errors} failed`);
  return { count: result['2xx'], rate: result.requests.average };
}

// By then, hot code has been compiled.
await send(url);
const rounds = [];
for (let round = 0; round < ROUNDS; round++) {
  const before = spent();
  const { count, rate } = await send(url);
  rounds.push({ micros: (spent() - before) / count, rate });
}
const resident = family().reduce((sum, pid) => sum + statusOf(pid, 'VmRSS'), 0);
console.table({
  'processor time a request, µs': Math.round(median(rounds.map(({ micros }) => micros))),
  'requests a second': Math.round(median(rounds.map(({ rate }) => rate))),
  'resident, MB (what processes share counts for each)': Math.round(resident / 1024),
});
