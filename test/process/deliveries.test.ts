// A server that is killed between a response and what it promised: mail and logout tokens are sent nevertheless.
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { tenant } from '../connections/passwordless/tenant.ts';
import { logoutTenant, v2 } from '../logout/support.ts';
import { createAgent } from '../support/agent.ts';
import { logIn, USER, webRequest } from '../support/flows.ts';
import { freePort } from '../support/free-port.ts';
import { runServer, type ServerProcess } from '../support/process.ts';
import { serveFolder, type TestServer } from '../support/server.ts';
import { startMailServer, type TestMailServer } from '../support/smtp.ts';
import { actionsAt } from '../support/tenant.ts';
import { until } from '../support/wait-until.ts';

describe('a server that is killed', () => {
  let cwd: string;
  let mail: TestMailServer;
  /** The server that is killed. */
  let server: ServerProcess | undefined;
  /** The server that runs after it. */
  let next: TestServer | undefined;
  beforeEach(async () => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-killed-'));
    mail = await startMailServer();
  });
  afterEach(async () => {
    server?.child.kill('SIGKILL');
    await stop();
    mail.release();
    await mail.stop();
    rmSync(cwd, { recursive: true, force: true });
  });
  const envOf = (smtp: string) => ({
    TENANT_FILE: 'tenant.yaml',
    SMTP_URL: smtp,
    MAIL_FROM: 'login@example.test',
  });
  const start = async (file: object = tenant, smtp = mail.url) => {
    writeFileSync(join(cwd, 'tenant.yaml'), stringify(file));
    server = await runServer({ cwd, env: envOf(smtp) });
    return server;
  };
  const startNext = async () => {
    next = await serveFolder(cwd, envOf(mail.url));
  };
  const stop = async () => {
    await next?.stop();
    next = undefined;
  };
  const signUp = async (running: ServerProcess, email: string) => {
    const json = { client_id: 'web', connection: 'users', email, password: USER.password };
    const answer = await createAgent(running).request('/dbconnections/signup', { json });
    expect(answer.status, answer.text).to.equal(200);
  };
  const onDisk = () =>
    readdirSync(join(cwd, 'data/store'), { recursive: true, encoding: 'utf8' })
      .map((name) => join(cwd, 'data/store', name))
      .filter((file) => statSync(file).isFile())
      .map((file) => readFileSync(file, 'latin1'))
      .join('\n');

  it('before it has sent promised mails sends each once when it runs again', async () => {
    const nobody = `smtp://127.0.0.1:${await freePort()}`;
    const first = await start(tenant, nobody);
    await signUp(first, 'new@example.test');
    const reset = { client_id: 'web', connection: 'users', email: USER.email };
    expect(
      (await createAgent(first).request('/dbconnections/change_password', { json: reset })).status,
    ).to.equal(200);
    await first.end('SIGKILL');
    expect(onDisk(), 'the codes and links of messages are sealed').not.to.match(/ticket=[\w-]{43}/);
    await startNext();
    await until(() => mail.messages.length === 2);
    expect([...mail.recipients].sort()).to.deep.equal([USER.email, 'new@example.test'].sort());
    await stop();
    expect(mail.messages).to.have.length(2);
    await startNext();
    await stop();
    expect(mail.messages, 'what was sent is kept no more').to.have.length(2);
  });

  it('while the provider accepts a mail sends it again with the same Message-ID', async () => {
    mail.behave('hold');
    const first = await start();
    await signUp(first, 'new@example.test');
    await until(() => mail.offered() === 1);
    await first.end('SIGKILL');
    // The provider accepts the mail, which the killed server never learns.
    mail.release();
    mail.behave('accept');
    await startNext();
    await until(() => mail.messages.length === 2);
    const [one, two] = mail.messages;
    expect(one?.messageId).to.match(/^<[0-9a-f]{32}@localhost>$/);
    expect(two?.messageId).to.equal(one?.messageId);
    expect(two?.text).to.equal(one?.text);
  });

  it('while an action after a sign-up runs repeats that action, but not one that has ended', async () => {
    let calls = 0;
    let answers = false;
    const crm = http.createServer((request, response) => {
      request.resume();
      calls += 1;
      if (answers) response.end();
    });
    crm.listen(0, '127.0.0.1');
    await once(crm, 'listening');
    const { port } = crm.address() as AddressInfo;
    const code = `exports.onExecutePostUserRegistration = async (event) => {
      await fetch('http://127.0.0.1:${port}/', { method: 'POST', body: event.user.email });
    };`;
    const file = { ...tenant, ...actionsAt('post-user-registration', { 'Tell the CRM': code }) };
    try {
      await signUp(await start(file), 'new@example.test');
      await until(() => calls === 1);
      await server?.end('SIGKILL');
      answers = true;
      await startNext();
      await until(() => calls === 2);
      await stop();
      await startNext();
      await stop();
      expect(calls).to.equal(2);
    } finally {
      crm.closeAllConnections();
      crm.close();
    }
  });

  it('before an application took its logout token posts one when it runs again', async () => {
    const tokens: string[] = [];
    let isUp = false;
    const app = http.createServer((request, response) => {
      let text = '';
      request.on('data', (chunk) => {
        text += String(chunk);
      });
      request.on('end', () => {
        if (!isUp) return;
        tokens.push(new URLSearchParams(text).get('logout_token') ?? '');
        response.end();
      });
    });
    app.listen(0, '127.0.0.1');
    await once(app, 'listening');
    const { port } = app.address() as AddressInfo;
    const backchannel_logout_urls = [`http://127.0.0.1:${port}/logout`];
    const file = logoutTenant({ web: { oidc_logout: { backchannel_logout_urls } } });
    const first = await start(file);
    const browser = createAgent(first);
    await logIn(browser, first, webRequest());
    expect((await v2(browser)).status).to.equal(302);
    await first.end('SIGKILL');
    isUp = true;
    await startNext();
    await until(() => tokens.length === 1);
    app.closeAllConnections();
    app.close();
  });
});
