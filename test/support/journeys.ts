// Which of our files run in five common requests, by V8's own counts, after everything is warm. Scripts run in a thread of
// their own, which is not counted.
import { Session } from 'node:inspector/promises';
import { callsOf, codeOf, tenant } from '../factors/tenant.ts';
import { callsWith, managementToken, startManaged } from '../management/support.ts';
import { createAgent } from './agent.ts';
import { accessTokenOf, logIn, responseOf, spaTokens, token, webRequest } from './flows.ts';
import { optionsFor, startProvider } from './oauth2-provider.ts';
import { logInUpstream } from './upstream-login.ts';

/** A file, and how many of its functions ran. */
interface JourneyFile {
  path: string;
  ran: number;
}

/** Prepares some work. */
type Prepare = () => Promise<() => Promise<unknown>>;

/** Starts a server, makes the requests, and returns the files of each by its name. */
export async function journeys(): Promise<Map<string, JourneyFile[]>> {
  const provider = await startProvider();
  const server = await startManaged({
    ...tenant,
    guardianPolicies: { policies: [] },
    connections: [
      ...tenant.connections,
      { name: 'acme', strategy: 'oauth2', enabled_clients: ['web'], options: optionsFor(provider) },
    ],
  });
  const inspector = new Session();
  inspector.connect();
  await inspector.post('Profiler.enable');
  const found = new Map<string, JourneyFile[]>();
  const count = async (name: string, prepare: Prepare) => {
    found.set(name, await filesOf(inspector, prepare));
  };
  try {
    await count('a. login with a password, from /authorize to the tokens', async () => {
      const agent = createAgent(server);
      return async () => accessTokenOf(agent, responseOf(await logIn(agent, server, webRequest())));
    });

    const email = 'mfa-11@example.test';
    const user = await server.users.findInConnection({ name: 'users' }, email);
    if (user === undefined) throw new Error(`there is no ${email}`);
    await server.users.update(user.id, { multifactor: ['any'] });
    const { secret } = await callsOf(server).enrollOtp(email);
    await count('b. password grant and a second factor', async () => {
      server.tick(31_000);
      const calls = callsOf(server);
      return async () => {
        const mfa_token = await calls.mfaToken(email);
        ok(await calls.verify('otp', { mfa_token, otp: codeOf(secret) }));
      };
    });

    const api = callsWith(server, await managementToken(server));
    let changes = 0;
    await count('c. PATCH /api/v2/users/{id}', async () => async () => {
      ok(
        await api('PATCH', `/users/${encodeURIComponent(user.id)}`, {
          user_metadata: { changes: ++changes },
        }),
      );
    });

    await count('d. login at a provider, with a script for the profile', async () => {
      const agent = createAgent(server);
      return async () => accessTokenOf(agent, await logInUpstream(server, {}, agent));
    });

    await count('e. refresh', async () => {
      const agent = createAgent(server);
      const { refresh_token } = await spaTokens(agent, server, { scope: 'openid offline_access' });
      return async () =>
        ok(await token(agent, { grant_type: 'refresh_token', client_id: 'spa', refresh_token }));
    });
  } finally {
    inspector.disconnect();
    await server.stop();
    await provider.stop();
  }
  return found;
}

/** The files of ours that run during some work. */
async function filesOf(inspector: Session, prepare: Prepare): Promise<JourneyFile[]> {
  for (let round = 0; round < 2; round++) await (await prepare())();
  const act = await prepare();
  await inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  await inspector.post('Profiler.takePreciseCoverage');
  await act();
  const { result } = await inspector.post('Profiler.takePreciseCoverage');
  await inspector.post('Profiler.stopPreciseCoverage');
  const files = result.flatMap(({ url, functions }) => {
    const path = /\/src\/(.+)$/.exec(url)?.[1];
    const ran = functions.filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0).length;
    return path === undefined || url.includes('node_modules') || ran === 0 ? [] : [{ path, ran }];
  });
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function ok<T extends { status: number; text: string }>(answer: T): T {
  if (answer.status !== 200) throw new Error(answer.text);
  return answer;
}
