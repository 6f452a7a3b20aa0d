// Logins with scripts: a script that exceeds a limit fails its login with a log event, others log in meanwhile, and
// developers see what it printed.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { tenant } from '../support/flows.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { stopwatch } from '../support/timing.ts';
import { failedLogins, logInUpstream } from '../support/upstream-login.ts';

const SCRIPTS = {
  loop: 'for (;;);',
  memory: 'const all = []; for (;;) all.push(new Uint8Array(1e6));',
  output: 'cb(null, { user_id: "x".repeat(100001) })',
  requests: 'for (let i = 0; i < 11; i++) fetch("URL_/userinfo")',
  closed: 'console.warn("closed since", 2020); cb(new UnauthorizedError("The account is closed."))',
};

describe('a login with a script', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  const tenantWith = (url: string) => ({
    ...tenant,
    connections: [
      { name: 'acme', strategy: 'oauth2', enabled_clients: ['web'], options: optionsFor(provider) },
      ...Object.entries(SCRIPTS).map(([name, body]) => ({
        name,
        strategy: 'oauth2',
        enabled_clients: ['web'],
        options: optionsFor(provider, {
          scripts: { fetchUserProfile: `function (token, context, cb) { ${body.replaceAll('URL_', url)} }` },
        }),
      })),
    ],
  });
  before(async () => {
    provider = await startProvider();
    server = await startServer({ tenant: tenantWith(provider.url), waits: { scriptCpu: 2_000 } });
    await logInUpstream(server);
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });

  for (const [name, error, description] of [
    ['memory', 'access_denied', /used more than 67108864 bytes of memory/],
    ['output', 'access_denied', /result is larger than 100000 bytes/],
    ['requests', 'access_denied', /made more than 10 requests/],
    ['closed', 'unauthorized', /^The account is closed.$/],
  ] as const) {
    it(`that exceeds the limit of ${name} fails, and the application and the log are told`, async () => {
      const told = await logInUpstream(server, { connection: name });
      expect(told).to.include({ error });
      expect(told.error_description).to.match(description);
      expect((await failedLogins(server)).some((one) => description.test(one))).to.equal(true);
    });
  }

  it('that loops fails, while others log in within a second', async () => {
    let isOver = false;
    const looping = logInUpstream(server, { connection: 'loop' }).finally(() => {
      isOver = true;
    });
    let meanwhile = 0;
    // A busy machine may have no time for five.
    for (let n = 0; n < 5 && !isOver; n++) {
      const time = stopwatch();
      expect(await logInUpstream(server)).to.have.property('code');
      expect(time()).to.be.below(1_000);
      if (!isOver) meanwhile++;
    }
    expect(meanwhile).to.be.above(0);
    // A machine that gives the script less than a quarter of a processor ends it by the elapsed time.
    expect((await looping).error_description).to.match(
      /used the processor for more than 2000 ms|did not answer within 20000 ms/,
    );
  });

  it('is shown to developers, with what the script printed, as a page and as JSON', async () => {
    await logInUpstream(server, { connection: 'closed' });
    const agent = createAgent(server);
    const shown = (await agent.get('/dev/scripts.json?connection=closed')).json();
    const [run, ...others] = shown as Record<string, any>[];
    expect(run).to.deep.include({
      connection: 'closed',
      script: 'fetchUserProfile',
      log: [{ level: 'warn', text: 'closed since 2020' }],
      failure: { kind: 'script', name: 'UnauthorizedError', message: 'The account is closed.' },
    });
    expect(run?.used)
      .to.include({ requests: 0 })
      .and.have.all.keys('time_ms', 'cpu_ms', 'memory_mib', 'requests');
    for (const other of others) expect(other.connection).to.equal('closed');
    const page = await agent.get('/dev/scripts');
    expect(page.text).to.include('closed since 2020').and.include('The account is closed.');
    expect((await agent.get('/dev/scripts', { host: 'evil.example' })).status).to.equal(404);
  });
});
