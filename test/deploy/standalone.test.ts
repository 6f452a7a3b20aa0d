// The directory that the container image is made of: all packages in a few files, and nothing installed.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Metafile } from 'esbuild';
import { standalone } from '../../build/standalone.ts';
import { authnRequest, redirectQuery } from '../saml/messages.ts';
import { logInAt, samlClient } from '../saml/support.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { API, follow, payload, tenant, token, USER } from '../support/flows.ts';
import { runServer, runToEnd, type ServerProcess } from '../support/process.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { actionsAt } from '../support/tenant.ts';

const ACTION = `exports.onExecuteCredentialsExchange = async (event, api) => {
  api.accessToken.setCustomClaim('https://example.test/client', event.client.name);
};`;

describe('the standalone directory', () => {
  let folder: string;
  let cwd: string;
  let made: Metafile;
  let server: ServerProcess;
  let agent: Agent;
  const command = (...args: string[]) => [process.execPath, join(folder, 'dist/cli.js'), ...args];

  before(async () => {
    folder = mkdtempSync(join(SCRATCH, 'gatehouse-standalone-'));
    made = await standalone(folder);
    cwd = join(folder, 'work');
    mkdirSync(join(cwd, 'config'), { recursive: true });
    const [users, ...others] = tenant.databases;
    const file = {
      ...tenant,
      databases: [{ ...users, enabled_clients: ['sp'] }, ...others],
      clients: [...tenant.clients, samlClient('sp')],
      ...actionsAt('credentials-exchange', { Claim: ACTION }),
    };
    // YAML includes JSON.
    writeFileSync(join(cwd, 'config/tenant.yaml'), JSON.stringify(file));
    server = await runServer({ cwd, command: command() });
    agent = createAgent(server);
  });
  after(async () => {
    await server?.end('SIGTERM');
    rmSync(folder, { recursive: true, force: true });
  });

  it('issues a token for which an action ran', async () => {
    const machine = { client_id: 'm2m', client_secret: 'm2m-secret', audience: API };
    const answer = await token(agent, { grant_type: 'client_credentials', ...machine });
    expect(answer.status).to.equal(200);
    expect(payload(answer.json().access_token)).to.include({ 'https://example.test/client': 'Machine' });
  });

  it('logs a user in at its page, for a SAML application', async () => {
    const { status, text } = await agent.get('/samlp/metadata/sp');
    expect(status).to.equal(200);
    expect(text).to.contain(`Location="${server.url}/samlp/sp"`);
    const request = authnRequest({ attributes: { Destination: `${server.url}/samlp/sp` } });
    const { xml } = await logInAt(agent, server, `/samlp/sp?${redirectQuery(request)}`);
    expect(xml).to.contain('<saml:Audience>').and.contain(USER.email);
  });

  it('serves the pages of the console with their assets', async () => {
    const page = await follow(agent, await agent.get('/console'), server.url);
    expect(page.status).to.equal(200);
    const [, style = ''] = /<link rel="stylesheet" href="([^"]+)"/.exec(page.text) ?? [];
    expect((await agent.get(style)).headers['content-type']).to.match(/^text\/css/);
  });

  it('has the driver of PostgreSQL', async () => {
    const env = { DATABASE_URL: 'postgres://user:hidden@127.0.0.1:1/none', DATA_DIR: 'none', PORT: '0' };
    const { code, stderr } = await runToEnd({ cwd, env, command: command() });
    expect(stderr)
      .to.match(/database/)
      .and.contain('ECONNREFUSED');
    expect(code).to.equal(1);
  });

  it('finds the exports of each package that is loaded later', () => {
    // CommonJS that is imported later has one export, `default`. Code that uses another one needs the package as an
    // ECMAScript module.
    const nameless = Object.values(made.outputs)
      .filter(
        ({ entryPoint = '', exports }) => entryPoint.includes('node_modules') && exports.join() === 'default',
      )
      .map(({ entryPoint }) => entryPoint);
    expect(nameless).to.have.members([
      'node_modules/qrcode/lib/index.js',
      'node_modules/reflect-metadata/Reflect.js',
      'node_modules/twilio/lib/base/BaseTwilio.js',
      'node_modules/twilio/lib/base/Domain.js',
      'node_modules/twilio/lib/base/Version.js',
      'node_modules/twilio/lib/rest/api/v2010/account/message.js',
    ]);
  });

  it('has the licences of the packages in its files, and the other packages with theirs', () => {
    const licences = readFileSync(join(folder, 'LICENSES.txt'), 'utf8');
    for (const name of ['oidc-provider', 'koa', 'zod', 'pg', 'xml-crypto'])
      expect(licences).to.match(new RegExp(`^${name} \\d.* \\(MIT\\)$`, 'm'));
    expect(licences).to.contain('Filip Skokan').and.not.contain('no licence named');
    const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const files = Object.keys(made.inputs).join();
    for (const name of Object.keys(dependencies))
      if (!files.includes(`node_modules/${name}/`))
        expect(existsSync(join(folder, 'node_modules', name)), name).to.equal(true);
  });
});
