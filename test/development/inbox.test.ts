// The development inbox: as JSON, as a page that follows new messages, and restricted to this machine.
import { existsSync } from 'node:fs';
import { readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { BrowserContext, Page } from 'playwright-core';
import { createOutbox } from '../../src/capabilities/delivery/outbox.ts';
import { systemRandom } from '../../src/runtime/secrets.ts';
import { tenant } from '../connections/passwordless/tenant.ts';
import { type Agent, createAgent, readForm } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('the development inbox', () => {
  let server: TestServer;
  let agent: Agent;
  beforeEach(async () => {
    server = await startServer({ tenant });
    agent = createAgent(server);
  });
  afterEach(() => server.stop());

  const send = (email: string, how: 'code' | 'link' = 'code') =>
    agent.request('/passwordless/start', {
      json: { client_id: 'spa', connection: 'email', email, send: how },
    });
  const outbox = () =>
    createOutbox({ directory: join(server.dataDir, 'outbox'), clock: Date.now, random: systemRandom });

  it('returns the messages as JSON, newest first', async () => {
    await send('first@example.test');
    await send('second@example.test', 'link');
    await agent.request('/passwordless/start', {
      json: { client_id: 'spa', connection: 'sms', phone_number: '+16505551234' },
    });
    const messages = (await agent.get('/dev/inbox.json')).json();
    expect(messages.map(({ to }: { to: string }) => to)).to.deep.equal([
      '+16505551234',
      'second@example.test',
      'first@example.test',
    ]);
    expect(messages[2]).to.have.all.keys('to', 'channel', 'subject', 'text', 'html', 'code', 'at');
    expect(messages[1]).to.have.all.keys('to', 'channel', 'subject', 'text', 'html', 'link', 'at');
    expect(messages[0]).to.have.all.keys('to', 'channel', 'text', 'code', 'at');
    expect(Date.parse(messages[0].at)).to.be.closeTo(Date.now(), 60_000);
    const { 0: only, length } = (await agent.get('/dev/inbox.json?to=first%40example.test')).json();
    expect(only.to).to.equal('first@example.test');
    expect(length).to.equal(1);
  });

  it('stores each message in a file that only its owner can read', async () => {
    await send('file@example.test');
    const [file = ''] = await readdir(join(server.dataDir, 'outbox'));
    expect((await stat(join(server.dataDir, 'outbox', file))).mode & 0o777).to.equal(0o600);
  });

  it('shows the other messages when the file of one is damaged', async () => {
    await send('damaged@example.test');
    const [file = ''] = await readdir(join(server.dataDir, 'outbox'));
    await writeFile(join(server.dataDir, 'outbox', file), '{"to":"damaged@exa');
    await send('whole@example.test');
    const messages = (await agent.get('/dev/inbox.json')).json();
    expect(messages.map(({ to }: { to: string }) => to)).to.deep.equal(['whole@example.test']);
    const { status, text } = await agent.get('/dev/inbox');
    expect(status).to.equal(200);
    expect(text).to.contain('whole@example.test');
    expect((await agent.get(`/dev/inbox/${file.slice(0, -5)}`)).status).to.equal(404);
  });

  it('is hidden from pages of other hosts and from other origins', async () => {
    await send('host@example.test');
    for (const path of ['/dev/inbox', '/dev/inbox.json']) {
      expect((await agent.get(path, { host: 'evil.example' })).status).to.equal(404);
      const { headers } = await agent.get(path, { origin: 'http://localhost:5173' });
      expect(headers).not.to.have.property('access-control-allow-origin');
    }
  });

  it('is empty at first, and can be cleared only with our own form', async () => {
    expect((await agent.get('/dev/inbox.json')).json()).to.deep.equal([]);
    expect((await agent.get('/dev/inbox')).text).to.contain('Nothing was sent yet');
    await send('gone@example.test');
    expect((await agent.request('/dev/inbox', { form: { _csrf: 'x' } })).status).to.equal(403);
    const { action, fields } = readForm(await agent.get('/dev/inbox'), '_csrf');
    expect((await agent.request(action, { form: fields })).status).to.equal(303);
    expect((await agent.get('/dev/inbox.json')).json()).to.deep.equal([]);
  });

  for (const id of ['nothing', '..%2f..%2fstore%2fjournal', '0000000000000-000000-00000000', '%00']) {
    it(`has no message ${id}`, async () => {
      expect((await agent.get(`/dev/inbox/${id}`)).status).to.equal(404);
    });
  }

  it('does not exist in production', async () => {
    const production = await startServer({
      tenant: {
        ...tenant,
        clients: tenant.clients.map(({ client_secret, ...client }) => ({
          ...client,
          ...(client_secret !== undefined && {
            client_secret: `${client_secret}, long enough for production`,
          }),
        })),
        users: [],
        connections: tenant.connections.filter(({ strategy }) => strategy !== 'sms'),
      },
      env: {
        NODE_ENV: 'production',
        TLS: 'proxy',
        TRUSTED_PROXIES: '127.0.0.1',
        BASE_URL: 'https://id.example.test',
        SMTP_URL: 'smtp://127.0.0.1:1',
        MAIL_FROM: 'login@example.test',
      },
    });
    for (const path of ['/dev/inbox', '/dev/inbox.json']) {
      const answer = await fetch(`http://127.0.0.1:${production.settings.port}${path}`, {
        headers: { 'x-forwarded-proto': 'https', host: 'id.example.test' },
      });
      expect(answer.status).to.equal(404);
    }
    expect(existsSync(join(production.dataDir, 'outbox'))).to.equal(false);
    await production.stop();
  });

  describe('in a browser', () => {
    let browser: TestBrowser;
    let context: BrowserContext;
    let page: Page;
    beforeEach(async () => {
      browser = await launchBrowser(server.ca);
      context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
      page = await context.newPage();
      await page.goto(`${server.url}/dev/inbox`);
    });
    afterEach(() => browser.close());

    it('shows a message when it is sent, without a reload, and copies its code', async () => {
      await page.getByText('Nothing was sent yet').waitFor();
      await send('live@example.test');
      await page.getByText('live@example.test', { exact: true }).waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
      const { code } = (await agent.get('/dev/inbox.json')).json()[0];
      await page.getByRole('button', { name: `Copy ${code}` }).click();
      await page.getByText('Copied').waitFor();
      expect(await page.evaluate('navigator.clipboard.readText()')).to.equal(code);
    });

    it('runs nothing in a mail, and shows its names as text', async () => {
      await outbox().deliver(
        {
          channel: 'email',
          to: '<img src=x onerror=document.title="run">@example.test',
          from: 'x',
          subject: '<script>document.title="run"</script>',
          text: '</pre><script>document.title="run"</script>',
          html: '<html><head></head><body><script>parent.document.title="run"; top.location="https://evil.example/"</script><p id="mail">the mail</p><form action="https://evil.example/"><button>go</button></form></body></html>',
        },
        'an-id',
      );
      await page.getByRole('heading', { name: '<script>' }).waitFor();
      const frame = page.frameLocator('iframe').first();
      expect(await frame.locator('#mail').textContent()).to.equal('the mail');
      expect(await page.title()).to.contain('Sent messages');
      expect(page.url()).to.equal(`${server.url}/dev/inbox`);
      const mail = await agent.get(`/dev/inbox/${(await outbox().list())[0]?.id}`);
      expect(mail.headers['content-security-policy']).to.contain('sandbox').and.not.contain('allow-scripts');
    });

    it('is linked from the development page', async () => {
      await page.goto(server.url);
      await page.getByRole('link', { name: 'Sent messages' }).click();
      expect(await page.getByRole('heading', { level: 1 }).textContent()).to.equal('Sent messages');
    });
  });
});
