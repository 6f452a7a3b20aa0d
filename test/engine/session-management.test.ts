// OpenID Connect Session Management 1.0, for tenants that switch it on.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { launchBrowser } from '../support/browser.ts';
import {
  authorize,
  logIn,
  payload,
  responseOf,
  spaRequest,
  tenant,
  token,
  USER,
  WEB_CALLBACK,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('base64url');

async function startPage(): Promise<http.Server> {
  const server = http.createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>App</title>');
  });
  server.listen(0, 'localhost');
  await once(server, 'listening');
  return server;
}

describe('session management', () => {
  let server: TestServer;
  let app: http.Server;
  let stranger: http.Server;
  let origin: string;
  before(async () => {
    [app, stranger] = await Promise.all([startPage(), startPage()]);
    origin = `http://localhost:${(app.address() as AddressInfo).port}`;
    server = await startServer({
      tenant: tenantWith({
        change: { web: { callbacks: [WEB_CALLBACK, `${origin}/in`] } },
        tenant: { ...tenant.tenant, flags: { session_management: true } },
      }),
    });
  });
  after(async () => {
    await server?.stop();
    app?.close();
    stranger?.close();
  });

  it('adds a session_state of client, origin, browser state and salt to responses with openid', async () => {
    const agent = createAgent(server);
    const response = responseOf(await logIn(agent, server, webRequest()));
    const [hash, salt] = String(response.session_state).split('.');
    const state = agent.cookies().find(({ name }) => name === '__Secure-gatehouse_state');
    expect(state?.path).to.equal('/check_session');
    expect(hash).to.equal(sha256(`web http://localhost:3001 ${state?.value} ${salt}`));
    const without = responseOf(await logIn(createAgent(server), server, webRequest({ scope: 'profile' })));
    expect(without).to.have.property('code');
    expect(without).not.to.have.property('session_state');
  });

  it('derives the browser state from a secret, not from the sid that applications know', async () => {
    const agent = createAgent(server);
    const { code } = responseOf(await logIn(agent, server, webRequest()));
    const stateOf = () => agent.cookies().find(({ name }) => name === '__Secure-gatehouse_state')?.value;
    const before = stateOf();
    const answer = await token(agent, {
      grant_type: 'authorization_code',
      client_id: 'web',
      client_secret: 'web-secret',
      code: String(code),
      redirect_uri: WEB_CALLBACK,
    });
    const { sid } = payload(answer.json().id_token);
    expect(before)
      .to.be.a('string')
      .and.not.equal(sha256(`browser state ${sid}`));
    expect(responseOf(await authorize(agent, webRequest({ prompt: 'none' })))).to.have.property('code');
    expect(stateOf(), 'the same session').to.equal(before);
  });

  it('announces a page that applications may frame, with a single script', async () => {
    const found = (await createAgent(server).get('/.well-known/openid-configuration')).json();
    expect(found.check_session_iframe).to.equal(`${server.url}/check_session`);
    const { headers } = await createAgent(server).get('/check_session');
    expect(headers['content-security-policy']).to.match(
      /^default-src 'none'; script-src 'sha256-[^']+'; frame-ancestors https: http:\/\/localhost:\* /,
    );
    expect(headers).not.to.have.property('x-frame-options');
  });

  it('tells an application in a browser whether the session has changed, and no other origin', async () => {
    const browser = await launchBrowser(server.ca);
    try {
      const page = await (await browser.newContext()).newPage();
      await page.goto(
        `${server.url}/authorize?${new URLSearchParams(webRequest({ redirect_uri: `${origin}/in` }))}`,
      );
      await page.getByLabel('Email address').fill(USER.email);
      await page.getByLabel('Password', { exact: true }).fill(USER.password);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.waitForURL((url) => url.origin === origin);
      const session = new URL(page.url()).searchParams.get('session_state') ?? '';
      const ask = (message: string) =>
        page.evaluate(
          ([address, text]) =>
            new Promise<string>((resolve) => {
              const { document, addEventListener } = globalThis as any;
              const frame = document.createElement('iframe');
              frame.src = `${address}/check_session`;
              addEventListener(
                'message',
                (event: { origin: string; data: string }) =>
                  resolve(`${event.origin === address} ${event.data}`),
                {
                  once: true,
                },
              );
              frame.onload = () => frame.contentWindow?.postMessage(text, address as string);
              document.body.append(frame);
            }),
          [server.url, message] as const,
        );
      expect(await ask(`web ${session}`)).to.equal('true unchanged');
      expect(await ask(`spa ${session}`)).to.equal('true changed');
      expect(await ask(`web ${sha256('x')}.salt`)).to.equal('true changed');
      for (const wrong of ['web', 'web .', '', `web ${session}.more`])
        expect(await ask(wrong)).to.equal('true error');
      // Another origin that knows all that the application knows.
      const port = (app.address() as AddressInfo).port;
      await page.goto(`http://127.0.0.1:${port}/`).catch(() => page.goto(`${origin}/`));
      if (new URL(page.url()).origin !== origin) expect(await ask(`web ${session}`)).to.equal('true changed');
      await page.goto(`${server.url}/v2/logout`);
      await page.goto(`${origin}/`);
      expect(await ask(`web ${session}`)).to.equal('true changed');
    } finally {
      await browser.close();
    }
  });

  it('answers a sibling frame of the application', async () => {
    const browser = await launchBrowser(server.ca);
    try {
      const page = await (await browser.newContext()).newPage();
      await page.goto(
        `${server.url}/authorize?${new URLSearchParams(webRequest({ redirect_uri: `${origin}/in` }))}`,
      );
      await page.getByLabel('Email address').fill(USER.email);
      await page.getByLabel('Password', { exact: true }).fill(USER.password);
      await page.getByRole('button', { name: 'Continue' }).click();
      await page.waitForURL((url) => url.origin === origin);
      const session = new URL(page.url()).searchParams.get('session_state') ?? '';
      const answer = await page.evaluate(
        ([address, text]) =>
          new Promise<string>((resolve) => {
            const { document } = globalThis as any;
            const frameOf = (src: string, then: (window: any) => void) => {
              const frame = document.createElement('iframe');
              frame.onload = () => then(frame.contentWindow);
              frame.src = src;
              document.body.append(frame);
            };
            frameOf(`${address}/check_session`, (provider) =>
              frameOf('/frame', (own) => {
                own.addEventListener('message', (event: { origin: string; data: string }) =>
                  resolve(`${event.origin === address} ${event.data}`),
                );
                // The sender of a message is the frame whose code runs.
                own.provider = provider;
                own.eval(`provider.postMessage(${JSON.stringify(text)}, ${JSON.stringify(address)})`);
              }),
            );
          }),
        [server.url, `web ${session}`] as const,
      );
      expect(answer).to.equal('true unchanged');
    } finally {
      await browser.close();
    }
  });

  it('is off by default', async () => {
    const plain = await startServer({ tenant });
    try {
      const agent = createAgent(plain);
      expect((await agent.get('/check_session')).status).to.equal(404);
      const found = (await agent.get('/.well-known/openid-configuration')).json();
      expect(found).not.to.have.property('check_session_iframe');
      const response = responseOf(await logIn(agent, plain, spaRequest('x'.repeat(43))));
      expect(response).to.have.property('code');
      expect(response).not.to.have.property('session_state');
      expect(agent.cookies().map(({ name }) => name)).not.to.include('__Secure-gatehouse_state');
    } finally {
      await plain.stop();
    }
  });
});
