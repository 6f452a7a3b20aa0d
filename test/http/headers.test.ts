import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import Koa from 'koa';
import type { Page } from 'playwright-core';
import { LOGIN_PAGE } from '../../src/features/connections/database/base/database-pages.ts';
import { nameField } from '../../src/features/connections/name-field.ts';
import { cspSource, securityHeaders } from '../../src/http/server/application.ts';
import { createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { PAGES } from './pages.ts';
import { type Site, sitePage, startSite } from './site.ts';

/** Starts an application on another origin, whose page has the content of `html`, and whose `/hop` redirects to `hop`. */
async function startApplication(
  host = 'localhost',
): Promise<{ origin: string; html: string; hop: string; stop(): void }> {
  const application = { origin: '', html: '', hop: '', stop: () => {} };
  const server = http.createServer((request, response) => {
    response.setHeader('content-type', 'text/html');
    if (request.url === '/hop') response.writeHead(302, { location: application.hop });
    response.end(`<!doctype html><title>application</title>${application.html}`);
  });
  server.listen(0, host);
  await once(server, 'listening');
  application.origin = `http://${host}:${(server.address() as AddressInfo).port}`;
  application.stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return application;
}

describe('security headers', () => {
  let site: Site;
  let browser: TestBrowser;
  let application: Awaited<ReturnType<typeof startApplication>>;
  let page: Page;

  before(async () => {
    site = await startSite(PAGES);
    application = await startApplication();
    browser = await launchBrowser(site.ca);
  });
  after(async () => {
    await browser?.close();
    await site?.stop();
    application?.stop();
  });
  beforeEach(async () => {
    page = await (await browser.newContext()).newPage();
    application.html = '';
  });
  afterEach(() => page.context().close());

  /** Returns the directives of a response's content security policy. */
  const policyOf = async (path: string): Promise<Map<string, string>> => {
    const { headers } = await createAgent(site).get(path);
    return new Map(
      String(headers['content-security-policy'])
        .split('; ')
        .map((directive) => [directive.split(' ')[0] ?? '', directive.slice(directive.indexOf(' ') + 1)]),
    );
  };

  it('are on every response, found or not', async () => {
    const { headers } = await createAgent(site).get('/nowhere');
    expect(headers).to.include({
      'content-security-policy':
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
    });
    expect(headers['permissions-policy']).to.contain('camera=()');
  });

  it('include Strict-Transport-Security only when enabled', async () => {
    const headersWith = async (hsts: boolean) => {
      const app = new Koa();
      app.use(securityHeaders({ hsts }));
      const server = app.listen(0);
      await once(server, 'listening');
      const answer = await fetch(`http://localhost:${(server.address() as AddressInfo).port}/`);
      server.close();
      return answer.headers;
    };
    expect((await headersWith(true)).get('strict-transport-security')).to.equal('max-age=31536000');
    expect((await headersWith(false)).get('strict-transport-security')).to.equal(null);
  });

  describe('of pages', () => {
    it("allow nothing but the page's own scripts and styles", async () => {
      const policy = await policyOf('/login');
      expect(policy.get('default-src')).to.equal("'none'");
      expect(policy.get('script-src')).to.match(/^'nonce-[\w+/]{22}=='$/);
      expect(policy.get('style-src')).to.equal(policy.get('script-src'));
      expect(policy.get('form-action')).to.equal("'self'");
      expect(policy.get('frame-ancestors')).to.equal("'none'");
      expect(policy.get('base-uri')).to.equal("'none'");
      expect(policy.has('connect-src')).to.equal(false);
    });

    it('have a new nonce for each response', async () => {
      const nonces = [await policyOf('/login'), await policyOf('/login')].map((p) => p.get('script-src'));
      expect(nonces[0]).not.to.equal(nonces[1]);
    });

    it('forbid caching, and name the media type and the language', async () => {
      const { headers } = await createAgent(site).get('/login');
      expect(headers).to.include({
        'cache-control': 'no-store',
        'content-language': 'en',
        'content-type': 'text/html; charset=utf-8',
        'referrer-policy': 'same-origin',
      });
    });

    it('let only development pages call this server, and isolate them from their openers', async () => {
      expect((await policyOf('/home')).get('connect-src')).to.equal("'self'");
      const opener = async (path: string) =>
        (await createAgent(site).get(path)).headers['cross-origin-opener-policy'];
      expect(await opener('/home')).to.equal('same-origin');
      expect(await opener('/login')).to.equal('unsafe-none');
    });

    it('block an injected script', async () => {
      await page.goto(`${site.url}/login`);
      const blocked = page.waitForEvent('console', (message) => message.text().includes('script-src'));
      await page.evaluate(() => {
        const { document } = globalThis as any;
        const script = document.createElement('script');
        script.textContent = "document.title = 'run'";
        document.body.append(script);
      });
      await blocked;
      expect(await page.title()).not.to.equal('run');
    });

    it("forbid framing, even by this server's own pages", async () => {
      application.html = `<iframe src="${site.url}/login"></iframe>`;
      for (const opened of [application.origin, site.url]) {
        await page.goto(opened === site.url ? `${site.url}/nowhere` : opened);
        const refused = page.waitForEvent('console', (message) => message.text().includes('frame'));
        if (opened === site.url) {
          await page.route(`${site.url}/framing`, (route) =>
            route.fulfill({ contentType: 'text/html', body: application.html }),
          );
          await page.goto(`${site.url}/framing`);
        } else await page.reload();
        await refused;
        expect(await page.frameLocator('iframe').locator('form').count()).to.equal(0);
      }
    });

    it("keep the opener of an application's popup", async () => {
      await page.goto(application.origin);
      const [popup] = await Promise.all([
        page.waitForEvent('popup'),
        page.evaluate((url) => void (globalThis as any).open(url), `${site.url}/login`),
      ]);
      await popup.waitForURL(`${site.url}/login`);
      expect(await popup.evaluate('window.opener !== null')).to.equal(true);
    });
  });

  describe('image sources of a page', () => {
    const sources = async (logo?: string) => {
      const connections =
        logo === undefined ? [] : [{ text: 'login.with', name: 'Acme', url: '/acme', logo }];
      site.show('/images', sitePage(LOGIN_PAGE, { ...MODEL, connections }));
      const answer = await page.goto(`${site.url}/images`);
      return /img-src ([^;]*)/.exec(answer?.headers()['content-security-policy'] ?? '')?.[1];
    };

    for (const [logo, expected] of [
      [undefined, "'self' data:"],
      ['https://icons.example.test/acme.svg', "'self' data: https://icons.example.test"],
      ["https://icons.example.test/a; script-src 'unsafe-inline'", "'self' data: https://icons.example.test"],
      ['http://icons.example.test/acme.svg', "'self' data:"],
      ['javascript:alert(1)', "'self' data:"],
    ] as const) {
      it(`are ${expected} for a connection with ${logo ?? 'no picture'}`, async () => {
        expect(await sources(logo)).to.equal(expected);
      });
    }
  });

  describe('form targets of a page', () => {
    /** Posts the page's form, which is answered with a redirect to `to`. */
    const post = async (path: string, to: string) => {
      await page.goto(site.url + path);
      await page.evaluate((target) => {
        const { document } = globalThis as any;
        const field = document.createElement('input');
        Object.assign(field, { type: 'hidden', name: 'to', value: target });
        document.forms[0].append(field);
      }, to);
      await page.getByLabel('Email address').fill('ada@example.test');
      await page.getByLabel('Password', { exact: true }).fill('secret');
      await page.getByRole('button', { name: 'Continue' }).click();
    };

    it('include everything when the form may lead to an application', async () => {
      const callback = `${application.origin}/callback`;
      site.show('/login-to', sitePage(LOGIN_PAGE, MODEL, { formsLeave: true }));
      await post('/login-to', `${callback}?code=1`);
      await page.waitForURL(`${callback}?code=1`);
    });

    it('include where the callback redirects to, on another host without TLS', async () => {
      const other = await startApplication('127.0.0.1');
      application.hop = `${other.origin}/app`;
      site.show('/login-to', sitePage(LOGIN_PAGE, MODEL, { formsLeave: true }));
      await post('/login-to', `${application.origin}/hop`);
      await page.waitForURL(`${other.origin}/app`);
      other.stop();
    });

    it('include where the callback redirects to, in a desktop application', async () => {
      const messages: string[] = [];
      page.on('console', (message) => messages.push(message.text()));
      application.hop = 'com.example.app:/callback';
      site.show('/login-to', sitePage(LOGIN_PAGE, MODEL, { formsLeave: true }));
      const gone = page.waitForEvent('requestfailed');
      await post('/login-to', `${application.origin}/hop`);
      // There is no such application on this machine; the content security policy would have said so on the console.
      expect((await gone).failure()?.errorText).to.equal('net::ERR_ABORTED');
      await page.evaluate('0');
      expect(messages.join()).not.to.contain('form-action');
    });

    it('exclude other origins for a page that belongs to none', async () => {
      site.show('/login-to', sitePage(LOGIN_PAGE, MODEL));
      const blocked = page.waitForEvent('console', (message) => message.text().includes('form-action'));
      await post('/login-to', application.origin);
      await blocked;
      expect(page.url()).to.equal(`${site.url}/login-to`);
    });

    for (const [address, source] of [
      ['https://app.example.test/callback?x=1', 'https://app.example.test'],
      ['http://localhost:5173/callback', 'http://localhost:5173'],
      ['http://127.0.0.1/callback', 'http://127.0.0.1'],
      ['com.example.app:/callback', 'com.example.app:'],
      ['com.example.app://callback/path', 'com.example.app:'],
      ['http://[::1]:8080/callback', 'http:'],
      ["https://app.example.test/a; script-src 'unsafe-inline'", 'https://app.example.test'],
    ] as const) {
      it(`contain ${address} as ${source}`, () => {
        expect(cspSource(address)).to.equal(source);
      });
    }
  });
});

const MODEL = {
  client: { name: 'App' },
  names: nameField(['email']),
  values: { username: '' },
  connections: [],
};
