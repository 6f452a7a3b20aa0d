// The site that is made of the documents: its pages, its search, and how a server in development serves it.
import { execFile } from 'node:child_process';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import http from 'node:https';
import { join, posix } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { ROOT } from '../../build/docs/documents.ts';
import { siteFiles, writeSite } from '../../build/docs/site.ts';
import {
  accessibilityFaults,
  faultsInAllLooks,
  injectAxe,
  sidewaysScroll,
  WIDE,
} from '../support/accessibility.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { tenant } from '../support/flows.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('the site of the documents', () => {
  let files: Map<string, string | Buffer>;
  let pages: Map<string, string>;

  before(async () => {
    files = await siteFiles();
    pages = new Map(
      [...files]
        .filter(([path]) => path.endsWith('.html'))
        .map(([path, content]) => [path, String(content)] as const),
    );
  });

  const linksOf = (page: string) =>
    [...(pages.get(page) ?? '').matchAll(/ (?:href|src)="([^"]+)"/g)]
      .map(([, link = '']) => link)
      .filter((link) => !/^([a-z]+:|\/)/.test(link))
      .map((link) => {
        const [path = '', anchor] = link.split('#');
        return { path: path === '' ? page : posix.join(posix.dirname(page), path), anchor };
      });

  it('has a page for each document, small enough to be in the package', () => {
    expect(pages.size).to.be.above(80);
    const bytes = [...files.values()].reduce((sum, content) => sum + Buffer.byteLength(content), 0);
    expect(bytes).to.be.below(1.8 * 1024 * 1024);
  });

  it('links to files and headings that exist', () => {
    const faults = [...pages.keys()].flatMap((page) =>
      linksOf(page)
        .filter(
          ({ path, anchor }) =>
            !files.has(path) || (anchor !== undefined && !pages.get(path)?.includes(` id="${anchor}"`)),
        )
        .map(({ path, anchor }) => `${page}: ${path}#${anchor}`),
    );
    expect(faults).to.deep.equal([]);
  });

  it('leads from the contents to every page', () => {
    const reached = new Set(['index.html']);
    for (const page of reached) for (const { path } of linksOf(page)) if (pages.has(path)) reached.add(path);
    expect([...pages.keys()].filter((page) => !reached.has(page))).to.deep.equal([]);
  });

  it('shows examples of templates as they are written', () => {
    expect(pages.get('do/connections/codes.html')).to.contain('{{ password }}');
  });

  it('has nothing inline, and no address of its own server', () => {
    for (const [path, page] of pages) {
      expect(page, path).not.to.match(
        /<style|<script(?! src="[./]*site\.js" defer><\/script>)| style=| on\w+=/,
      );
      expect(page, path).not.to.match(/(?:src|href)="\/(?!openapi\.json|api\/v2\/openapi\.json)/);
    }
  });

  it('is no reason for an installation to fail', async () => {
    const folder = mkdtempSync(join(SCRATCH, 'gatehouse-site-'));
    copyFileSync(join(ROOT, 'build/docs/make-site.js'), join(folder, 'make-site.mjs'));
    const run = promisify(execFile);
    const { stderr } = await run(process.execPath, [join(folder, 'make-site.mjs'), '--if-possible']);
    expect(stderr).to.contain('will not have the documents');
    const failed = await run(process.execPath, [join(folder, 'make-site.mjs')]).catch((thrown) => thrown);
    expect(failed.code).to.equal(1);
    rmSync(folder, { recursive: true });
  });
});

describe('the documents at /docs', () => {
  let server: TestServer;
  let agent: Agent;
  let browser: TestBrowser;
  let page: Page;

  before(async () => {
    await writeSite();
    server = await startServer({ tenant });
    agent = createAgent(server);
    browser = await launchBrowser(server.ca);
    page = await (await browser.newContext({ viewport: WIDE, reducedMotion: 'reduce' })).newPage();
    await injectAxe(page);
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  /** Sends a path as it is. */
  const statusOf = (path: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const { port } = server.settings;
      http
        .get({ host: 'localhost', port, path, ca: server.ca }, (answer) =>
          resolve(answer.resume().statusCode),
        )
        .on('error', reject);
    });

  it('are where the start page leads to', async () => {
    expect((await agent.get('/')).text).to.contain('href="/docs"');
    const first = await agent.get('/docs');
    expect([first.status, first.headers.location]).to.deep.equal([302, '/docs/index.html']);
    const index = await agent.get('/docs/index.html');
    expect(index.status).to.equal(200);
    expect(index.headers['content-type']).to.equal('text/html; charset=utf-8');
    expect(index.headers['content-security-policy']).to.contain("default-src 'none'; script-src 'self';");
    for (const path of ['/openapi.json', '/api/v2/openapi.json'])
      expect((await agent.get(path)).status, path).to.equal(200);
  });

  it('are the files of the site and nothing else', async () => {
    for (const path of [
      '/docs/',
      '/docs/do',
      '/docs/do/',
      '/docs/nothing.html',
      '/docs/../package.json',
      '/docs/../../package.json',
      '/docs/%2e%2e/%2e%2e/package.json',
      '/docs/..%2f..%2fpackage.json',
      '/docs/do/..%5c..%5cindex.html',
      '/docs//index.html',
      '/docs/./index.html',
      '/docs/do/%2e%2e/index.html',
      '/docs/index.html%00',
      '/docs/INDEX.HTML',
      '/docs/__proto__',
    ])
      expect(await statusOf(path), path).to.equal(404);
    expect(await statusOf('/docs/do/backups.html')).to.equal(200);
  });

  it('are for this machine alone', async () => {
    for (const headers of [{ host: 'evil.example' }, { 'x-forwarded-for': '203.0.113.7' }])
      expect((await agent.get('/docs/index.html', headers)).status, JSON.stringify(headers)).to.equal(404);
  });

  it('are found by a search in the browser, with the keyboard alone', async () => {
    await page.goto(`${server.url}/docs/index.html`);
    await page.keyboard.press('/');
    await page.keyboard.type('conformanse suite'); // with a mistake
    const results = page.getByRole('search').getByRole('link');
    await results.first().waitFor();
    expect(await page.getByRole('status').textContent()).to.match(/^\d+ results?$/);
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/docs/do/conformance.html*');

    await page.keyboard.press('/');
    await page.keyboard.type('OUTBOUND_ALLOW');
    await page.getByRole('link', { name: 'Say which hosts the server may call' }).first().waitFor();
    await page.keyboard.press('Escape');
    expect(await results.count()).to.equal(0);
    await page.keyboard.type('xyzzyqwv');
    await page.getByText('Nothing found for “xyzzyqwv”.').waitFor({ state: 'attached' });
  });

  it('need no JavaScript to be read', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false });
    const plain = await context.newPage();
    await plain.goto(`${server.url}/docs/index.html`);
    await plain.getByRole('link', { name: 'Protect an API' }).click();
    expect(await plain.getByRole('heading', { level: 1 }).textContent()).to.equal('Protect an API');
    const kind = plain.getByRole('navigation', { name: 'Pages of this kind' });
    expect(await kind.getByRole('link', { name: 'Protect an API' }).getAttribute('aria-current')).to.equal(
      'page',
    );
    expect(await plain.getByRole('search').count()).to.equal(0);
    await plain.getByRole('navigation', { name: 'Kinds' }).getByRole('link', { name: 'Look up' }).click();
    await plain.waitForURL('**/index.html#look-up');
  });

  it('are accessible in light and dark, on a phone too', async () => {
    const judged = { light: new Set<string>(), dark: new Set<string>() };
    for (const path of [
      'index.html',
      'learn/protect-an-api.html',
      'do/console.html',
      'do/connections/openid.html',
      'reference/settings.html',
      'understand/decisions/tokens.html',
    ]) {
      await page.setViewportSize(WIDE);
      await page.goto(`${server.url}/docs/${path}`);
      // Its script hears of a change of the width with the next frame.
      const look = () => page.evaluate('new Promise(requestAnimationFrame)');
      expect(await faultsInAllLooks(page, look, judged), path).to.deep.equal([]);
      expect(await sidewaysScroll(page), path).to.equal(0);
    }
  });

  it('have an accessible list of results', async () => {
    await page.setViewportSize(WIDE);
    await page.goto(`${server.url}/docs/do/backups.html`);
    await page.getByRole('searchbox').fill('second factor');
    await page.getByRole('search').getByRole('link').first().waitFor();
    // Not the colours: those of what is below the list cannot be determined.
    const rules = ['list', 'listitem', 'link-name', 'label', 'aria-allowed-role', 'target-size'];
    expect(await accessibilityFaults(page, rules)).to.deep.equal([]);
  });
});
