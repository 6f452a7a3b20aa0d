// The cost of two bound actions for a login, measured with silent logins (which hash no password, so that only the
// actions differ). With and without actions alternately in one run, one at a time and 200 at once. Run: node
// bench/actions.ts
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Answer, createAgent, readForm } from '../test/support/agent.ts';
import { USER } from '../test/support/flows.ts';
import { UNLIMITED } from '../test/support/unlimited.ts';
import { local, median, PROXIED, processorTime, proxiedEnvironment, start, stop } from './server.ts';

/** Enough that most come after the first thousand, during which the script engine is still being compiled. */
const LOGINS = Number(process.env.BENCH_LOGINS ?? 2_400);
const PARALLEL = Number(process.env.BENCH_PARALLEL ?? 200);
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3);
/** The goal: how many milliseconds two actions may add to the median login. */
const GOAL = 15;
const CALLBACK = 'https://app.example.test/callback';

const action = (name: string, body: string) => ({
  name,
  code: `exports.onExecutePostLogin = async (event, api) => {\n${body}\n};`,
  deployed: true,
  supported_triggers: [{ id: 'post-login' }],
});
const ACTIONS = [
  action(
    'Roles',
    `api.idToken.setCustomClaim('https://example.test/roles', event.authorization.roles);
     api.accessToken.setCustomClaim('https://example.test/plan', event.user.app_metadata.plan ?? 'none');`,
  ),
  action('Domain', `if (!event.user.email.endsWith('@example.test')) api.access.deny('Not from here.');`),
];

const client = (client_id: string) => ({
  client_id,
  name: client_id,
  app_type: 'regular_web',
  client_secret: 'bench-secret-that-is-no-example',
  oidc_conformant: true,
  callbacks: [CALLBACK],
  grant_types: ['authorization_code'],
});
const tenant = (isBound: boolean) => ({
  tenant: { friendly_name: 'Bench', default_directory: 'users' },
  clients: [client('bench')],
  databases: [{ name: 'users', enabled_clients: ['bench'] }],
  users: [{ ...USER, connection: 'users', email_verified: true }],
  ...UNLIMITED,
  ...(isBound && {
    actions: ACTIONS,
    triggers: { 'post-login': ACTIONS.map(({ name }) => ({ action_name: name })) },
  }),
});

/** Starts a server; returns it and a session cookie. */
async function prepare(isBound: boolean) {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-bench-'));
  writeFileSync(join(directory, 'tenant.yaml'), JSON.stringify(tenant(isBound)));
  const started = await start(
    fileURLToPath(new URL('../src/main.js', import.meta.url)),
    proxiedEnvironment(directory),
  );
  const url = local(started);
  const agent = createAgent({ url, ca: '' });
  const params = {
    client_id: 'bench',
    response_type: 'code',
    redirect_uri: CALLBACK,
    scope: 'openid',
    state: 's',
  };
  // The server redirects to its public address, where nothing listens.
  const onward = async (answer: Answer): Promise<Answer> => {
    if (answer.status < 300 || answer.status >= 400 || answer.location.startsWith(CALLBACK)) return answer;
    const { pathname, search } = new URL(answer.location);
    return onward(await agent.get(pathname + search, PROXIED));
  };
  const page = await onward(await agent.get(`/authorize?${new URLSearchParams(params)}`, PROXIED));
  const { action: path, fields } = readForm(page, 'password');
  const form = { ...fields, username: USER.email, password: USER.password };
  await onward(
    await agent.request(path, { form, headers: { origin: 'https://bench.example.test', ...PROXIED } }),
  );
  const cookie = agent
    .cookies()
    .filter(({ path }) => path === '/')
    .map(({ name, value }) => `${name}=${value}`)
    .join('; ');
  const silent = `${url}/authorize?${new URLSearchParams({ ...params, prompt: 'none' })}`;
  const login = async () => {
    const began = performance.now();
    const answer = await fetch(silent, { redirect: 'manual', headers: { cookie, ...PROXIED } });
    await answer.arrayBuffer();
    const location = answer.headers.get('location') ?? '';
    if (!location.includes('code=')) throw new Error(`no code: ${answer.status} ${location}`);
    return performance.now() - began;
  };
  return { started, directory, login };
}

/** Returns the milliseconds of each login, with `many` at a time. */
async function measure(login: () => Promise<number>, count: number, parallel: number): Promise<number[]> {
  const times: number[] = [];
  let left = count;
  const worker = async () => {
    while (left-- > 0) times.push(await login());
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return times;
}

const servers = [await prepare(false), await prepare(true)] as const;
for (const { login } of servers) await measure(login, 300, 20);
const rows: Record<string, unknown>[] = [];
for (const parallel of [1, 20, PARALLEL]) {
  const medians: number[][] = [[], []];
  const processor: number[][] = [[], []];
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, { login, started }] of servers.entries()) {
      const before = processorTime(started.child.pid ?? 0);
      medians[index]?.push(median(await measure(login, LOGINS, parallel)));
      const after = processorTime(started.child.pid ?? 0);
      processor[index]?.push((after.all - before.all) / 1e6 / LOGINS);
    }
  }
  const [without = 0, withTwo = 0] = medians.map(median);
  const [cpuWithout = 0, cpuWith = 0] = processor.map(median);
  rows.push({
    'at once': parallel,
    'without, ms': Number(without.toFixed(1)),
    'with two actions, ms': Number(withTwo.toFixed(1)),
    'more, ms': Number((withTwo - without).toFixed(1)),
    'processor without, ms': Number(cpuWithout.toFixed(2)),
    'processor with, ms': Number(cpuWith.toFixed(2)),
    goal: GOAL,
  });
}
console.table(rows);
for (const { started, directory } of servers) {
  await stop(started);
  rmSync(directory, { recursive: true, force: true });
}
