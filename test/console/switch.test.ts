// A server without a console, and the administrator of the example tenant.
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { addExample, EXAMPLE_ADMINISTRATOR } from '../../src/features/console/administrators/example.ts';
import { createAgent } from '../support/agent.ts';
import { startConsole } from '../support/console.ts';
import { tenant } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('a server without a console', () => {
  let server: TestServer;
  afterEach(() => server?.stop());

  it('has none of its paths', async () => {
    server = await startConsole({ env: { CONSOLE: 'off' } });
    const agent = createAgent(server);
    for (const path of ['', '/administrators', '/callback?state=x', '/link?ticket=x', '/users'])
      expect((await agent.get(`/console${path}`)).status, path).to.equal(404);
    expect((await agent.get('/')).text).not.to.contain('/console');
  });

  it('has no login for administrators', async () => {
    server = await startConsole({ env: { CONSOLE: 'off' } });
    const agent = createAgent(server);
    const account = await agent.get('/account?client_id=gatehouse-console');
    expect(account.status, account.text).to.equal(400);
    const query = new URLSearchParams({
      client_id: 'gatehouse-console',
      response_type: 'code',
      redirect_uri: `${server.url}/account/callback/gatehouse-console`,
    });
    expect((await agent.get(`/authorize?${query}`)).status).to.equal(400);
  });
});

describe('the administrator of the example tenant', () => {
  it('is shown on the start page until the password is changed, and prevents a start in production', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-console-'));
    const server = await startServer({ tenant, dataDir });
    const agent = createAgent(server);
    const home = async () => (await agent.get('/')).text;
    try {
      expect(await home()).not.to.contain(EXAMPLE_ADMINISTRATOR.email);
      const deps = { ...server, wallClock: Date.now };
      await Promise.all([addExample(deps), addExample(deps)]);
      await addExample(deps);
      expect(await home()).to.contain(EXAMPLE_ADMINISTRATOR.email);
      const all = await server.administrators.withEmail(EXAMPLE_ADMINISTRATOR.email);
      expect(all).to.have.length(1);
      const behindProxy = { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL: 'https://id.example.test' };
      const settings = {
        ...behindProxy,
        NODE_ENV: 'production',
        SMTP_URL: 'smtps://localhost:1',
        MAIL_FROM: 'a@example.test',
      };
      await server.stop();
      const refused = await startServer({
        tenant: { tenant: { friendly_name: 'Test tenant' } },
        dataDir,
        env: settings,
      }).then(
        async (running) => {
          await running.stop();
          return 'started';
        },
        (thrown: Error & { faults?: string[] }) => String(thrown.message || thrown.faults),
      );
      expect(refused).to.contain(EXAMPLE_ADMINISTRATOR.email);
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
