// There is no telemetry: a server opens no connection that is not configured.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { tenant } from '../connections/passwordless/tenant.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { logIn, responseOf, webRequest } from '../support/flows.ts';
import { runServer } from '../support/process.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { startTwilio, TWILIO } from '../support/twilio.ts';

const RECORDER = pathToFileURL(fileURLToPath(new URL('processes/connections.ts', import.meta.url))).href;

describe('a server', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(SCRATCH, 'gatehouse-telemetry-'));
    mkdirSync(join(cwd, 'config'));
    // YAML includes JSON.
    writeFileSync(join(cwd, 'config/tenant.yaml'), JSON.stringify(tenant));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  /** Runs a server, and returns where it has connected to from its start to its end. */
  async function connectionsOf(
    use: (agent: Agent, server: { url: string }) => Promise<void>,
    env: Record<string, string> = {},
  ) {
    const file = join(cwd, 'connections');
    const server = await runServer({
      cwd,
      env: { CONNECTIONS: file, NODE_OPTIONS: `--import ${RECORDER}`, ...env },
    });
    try {
      await use(createAgent(server), server);
    } finally {
      await server.end('SIGTERM');
    }
    return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  }

  const askForCode = async (agent: Agent, fields: object) => {
    const json = { client_id: 'web', client_secret: 'web-secret', ...fields };
    expect((await agent.request('/passwordless/start', { json })).status).to.equal(200);
  };

  it('opens no connection between its start and its end, when it logs users in and sends messages', async () => {
    const opened = await connectionsOf(async (agent, server) => {
      for (const path of ['/', '/.well-known/openid-configuration', '/readyz'])
        expect((await agent.get(path)).status).to.equal(200);
      const answer = await logIn(agent, server, webRequest());
      expect(responseOf(answer)).to.have.property('code');
      await askForCode(agent, { connection: 'sms', phone_number: '+16505551234' });
    });
    expect(opened).to.deep.equal([]);
  });

  it('opens those that are configured, which the test sees', async () => {
    const twilio = await startTwilio();
    const env = {
      TWILIO_ACCOUNT_SID: TWILIO.accountSid,
      TWILIO_AUTH_TOKEN: TWILIO.authToken,
      TWILIO_FROM: '+15005550006',
      TWILIO_API_URL: twilio.url,
    };
    const phone = { connection: 'sms', phone_number: '+16505551234' };
    const opened = await connectionsOf((agent) => askForCode(agent, phone), env);
    await twilio.stop();
    expect(opened).to.deep.equal([new URL(twilio.url).host]);
  });
});
