// The cost of a script for a login at a provider: a script that answers at once and one that requests the profile,
// compared with the same request without a script; one at a time, and 50 in parallel. Run: node bench/connections.ts
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { createScripts } from '../src/capabilities/scripts/scripts.ts';
import { createOutbound, LOOPBACK_RANGES, outboundRules } from '../src/http/outbound/outbound.ts';

const RUNS = Number(process.env.BENCH_RUNS ?? 300);
const PARALLEL = 50;
/** The goal: how many milliseconds a script may add to the median login. */
const GOAL = 10;
/** The pause between runs one at a time, in milliseconds, as between occasional logins. */
const PAUSE = 15;

const provider = http.createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ sub: '42', name: 'Ada', email: 'ada@example.test' }));
});
await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}/userinfo`;

const outbound = createOutbound({ rules: outboundRules(LOOPBACK_RANGES) });
const scripts = createScripts({ outbound, clock: Date.now, keepsLog: false });
const run = async (source: string, of = 'bench') => {
  const { failure } = await scripts.run({
    of,
    askedBy: 'web',
    source,
    entry: 'fetchUserProfile',
    args: ['token', {}],
  });
  if (failure !== undefined) throw new Error(`${failure.kind}: ${failure.message}`);
};

const AT_ONCE = 'function (token, context, cb) { cb(null, { user_id: 42, name: "Ada" }) }';
const ASKING = `function fetchUserProfile(token, context, callback) {
  request.get({ url: '${url}', headers: { Authorization: 'Bearer ' + token } }, (err, resp, body) => {
    if (err) return callback(err);
    if (resp.statusCode !== 200) return callback(new Error(body));
    let profile;
    try { profile = JSON.parse(body); } catch (e) { return callback(new Error('no JSON')); }
    callback(null, { user_id: profile.sub, name: profile.name, email: profile.email });
  });
}`;
const cases: Record<string, (of?: string) => Promise<unknown>> = {
  'the request without a script': async () => (await outbound.fetch(url)).json(),
  'a script that answers at once': (of) => run(AT_ONCE, of),
  'a script that asks for the profile': (of) => run(ASKING, of),
};

const quantile = (times: number[], part: number) =>
  times.toSorted((a, b) => a - b)[Math.floor((times.length - 1) * part)] ?? 0;
const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));
const timed = async (work: () => Promise<unknown>) => {
  const began = performance.now();
  await work();
  return performance.now() - began;
};
const shown = (times: number[]) =>
  `median ${quantile(times, 0.5).toFixed(1)} ms, 95 % ${quantile(times, 0.95).toFixed(1)} ms`;

const cold = await timed(() => run(AT_ONCE));
console.log(`the first run, with all that it loads: ${cold.toFixed(0)} ms`);

// Alternately, so that other load on the machine affects all alike.
const alone = Object.fromEntries(Object.keys(cases).map((name) => [name, [] as number[]]));
for (let n = 0; n < RUNS; n++) {
  for (const [name, work] of Object.entries(cases)) {
    await pause();
    const ms = await timed(work);
    if (n >= 10) alone[name]?.push(ms);
  }
}
for (const [name, times] of Object.entries(alone)) console.log(`${name}, alone: ${shown(times)}`);

for (const [name, work] of Object.entries(cases)) {
  const times: number[] = [];
  const began = performance.now();
  const walk = async (connection: number) => {
    for (let n = 0; n < RUNS / 10; n++) times.push(await timed(() => work(`connection-${connection % 4}`)));
  };
  await Promise.all(Array.from({ length: PARALLEL }, (_, connection) => walk(connection)));
  const perSecond = times.length / ((performance.now() - began) / 1000);
  console.log(`${name}, ${PARALLEL} in parallel: ${shown(times)}, ${perSecond.toFixed(0)} a second`);
}

const [plain = [], , asking = []] = Object.values(alone);
const overhead = quantile(asking, 0.5) - quantile(plain, 0.5);
const memory = Math.round(process.memoryUsage.rss() / 1024 / 1024);
console.log(
  `a script adds ${overhead.toFixed(1)} ms in the median (goal: below ${GOAL} ms); ${memory} MiB resident`,
);
await scripts.close();
provider.close();
provider.closeAllConnections();
