// Lists which of our files and functions run during a login and a refresh, by V8's own counts, after everything is
// warm. `node bench/journeys.ts`; with the files by name: `FILES=1`
import { Session } from 'node:inspector/promises';
import { callsOf, codeOf, tenant } from '../test/factors/tenant.ts';
import { createAgent, readForm } from '../test/support/agent.ts';
import { openPage } from '../test/support/browser-logins.ts';
import {
  follow,
  responseOf,
  spaTokens,
  submitLogin,
  token,
  USER,
  webRequest,
} from '../test/support/flows.ts';
import { nextMessageTo } from '../test/support/inbox.ts';
import { startServer } from '../test/support/server.ts';

const CLIENT = { client_id: 'web', client_secret: 'web-secret' };
const MFA = 'http://schemas.openid.net/pape/policies/2007/06/multi-factor';
const LOGIN = [
  'engine',
  'flow',
  'connections',
  'factors',
  'login',
  'hosted',
  'database',
  'passwordless',
  'mfa',
];

const server = await startServer({ tenant: { ...tenant, guardianPolicies: { policies: [] } } });
const inspector = new Session();
inspector.connect();
await inspector.post('Profiler.enable');

/** Counts which of our functions run during some work. */
async function count(
  name: string,
  prepare: () => Promise<unknown>,
  act: (prepared: never) => Promise<unknown>,
) {
  for (let round = 0; round < 2; round++) await act((await prepare()) as never);
  const prepared = await prepare();
  await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await inspector.post('Profiler.takePreciseCoverage');
  await act(prepared as never);
  const { result } = await inspector.post('Profiler.takePreciseCoverage');
  await inspector.post('Profiler.stopPreciseCoverage');
  const files = result.flatMap(({ url, functions }) => {
    const path = /\/src\/(.+)$/.exec(url)?.[1];
    const ran = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0);
    return path === undefined || url.includes('node_modules') || ran.length === 0
      ? []
      : [{ path, ran: ran.length }];
  });
  const folders = new Set(files.map(({ path }) => path.split('/').slice(0, -1).join('/')));
  const own = files.filter(({ path }) => LOGIN.includes(path.split('/')[0] ?? ''));
  const functions = files.reduce((sum, { ran }) => sum + ran, 0);
  console.log(
    `${name}: ${files.length} files in ${folders.size} folders, ${functions} functions; of these of the login itself (engine, flow, connections, factors): ${own.length} files, ${own.reduce((sum, { ran }) => sum + ran, 0)} functions`,
  );
  if (process.env.FILES !== undefined)
    console.log(
      files
        .map(({ path }) => `  ${path}`)
        .sort()
        .join('\n'),
    );
}

const code = (answer: Parameters<typeof responseOf>[0]) => {
  if (responseOf(answer).code === undefined) throw new Error(answer.text);
};

try {
  await count(
    'password login at the hosted page, from the form to the code',
    async () => {
      const agent = createAgent(server);
      return { agent, page: await openPage(agent, server, webRequest()) };
    },
    async ({
      agent,
      page,
    }: {
      agent: ReturnType<typeof createAgent>;
      page: Awaited<ReturnType<typeof openPage>>;
    }) => code(await submitLogin(agent, server, page, USER)),
  );

  let people = 0;
  await count(
    'token by an e-mailed code',
    async () => {
      const email = `journey-${++people}@example.test`;
      const agent = createAgent(server);
      await agent.request('/passwordless/start', {
        json: { ...CLIENT, connection: 'email', email, send: 'code' },
      });
      const { code: otp = '' } = await nextMessageTo(server, email, 1, 'code');
      return { agent, username: email, otp };
    },
    async ({
      agent,
      username,
      otp,
    }: {
      agent: ReturnType<typeof createAgent>;
      username: string;
      otp: string;
    }) => {
      const answer = await token(agent, {
        ...CLIENT,
        grant_type: 'http://auth0.com/oauth/grant-type/passwordless/otp',
        realm: 'email',
        scope: 'openid',
        username,
        otp,
      });
      if (answer.status !== 200) throw new Error(answer.text);
    },
  );

  await count(
    'refresh',
    async () => {
      const agent = createAgent(server);
      const tokens = await spaTokens(agent, server, { scope: 'openid offline_access' });
      return { agent, refreshToken: String(tokens.refresh_token) };
    },
    async ({ agent, refreshToken }: { agent: ReturnType<typeof createAgent>; refreshToken: string }) => {
      const answer = await token(agent, {
        grant_type: 'refresh_token',
        client_id: 'spa',
        refresh_token: refreshToken,
      });
      if (answer.status !== 200) throw new Error(answer.text);
    },
  );

  const email = 'mfa-11@example.test';
  const user = await server.users.findInConnection({ name: 'users' }, email);
  if (user === undefined) throw new Error(`there is no ${email}`);
  await server.users.update(user.id, { multifactor: ['any'] });
  const { secret } = await callsOf(server).enrollOtp(email);
  await count(
    'login with a second factor, from the form of the password to the code',
    async () => {
      server.tick(31_000);
      const agent = createAgent(server);
      return { agent, page: await openPage(agent, server, webRequest({ acr_values: MFA })) };
    },
    async ({
      agent,
      page,
    }: {
      agent: ReturnType<typeof createAgent>;
      page: Awaited<ReturnType<typeof openPage>>;
    }) => {
      const asked = await submitLogin(agent, server, page, { email, password: USER.password });
      const { action, fields } = readForm(asked, 'code');
      const posted = await agent.request(action, { form: { ...fields, code: codeOf(secret) } });
      code(await follow(agent, posted, server.url));
    },
  );
} finally {
  await server.stop();
}
