import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readAssets } from '../../src/capabilities/pages/assets.ts';
import { createAgent } from '../support/agent.ts';
import { PAGES } from './pages.ts';
import { type Site, startSite, VIEWS } from './site.ts';

describe('assets', () => {
  let site: Site;
  const { path } = readAssets(join(VIEWS, 'assets'));

  before(async () => {
    site = await startSite(PAGES);
  });
  after(() => site?.stop());

  for (const [name, type] of [
    ['gatehouse.css', 'text/css; charset=utf-8'],
    ['page.js', 'text/javascript; charset=utf-8'],
    ['mark.svg', 'image/svg+xml'],
  ] as const) {
    it(`are served under a name with their hash and cached for good: ${name}`, async () => {
      const { status, headers, text } = await createAgent(site).get(path(name));
      expect(status).to.equal(200);
      expect(headers).to.include({
        'content-type': type,
        'cache-control': 'public, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
      });
      expect(text).to.equal(readFileSync(join(VIEWS, 'assets', name), 'utf8'));
    });
  }

  it('are linked by the pages under those names', async () => {
    const { text } = await createAgent(site).get('/login');
    expect(text)
      .to.contain(`href="${path('gatehouse.css')}"`)
      .and.to.contain(`src="${path('page.js')}"`);
  });

  for (const wrong of [
    '/assets/gatehouse.css',
    '/assets/gatehouse.AAAAAAAAAAAA.css',
    '/assets/',
    '/assets/../locales/en/pages.json',
    '/assets/%2e%2e/locales/en/pages.json',
    '/assets/__proto__',
  ])
    it(`answers 404 to any other path: ${wrong}`, async () => {
      expect((await createAgent(site).get(wrong)).status).to.equal(404);
    });

  it('answers HEAD without a body, and rejects POST', async () => {
    const agent = createAgent(site);
    const head = await agent.request(path('page.js'), { method: 'HEAD' });
    expect([head.status, head.text]).to.deep.equal([200, '']);
    expect((await agent.request(path('page.js'), { method: 'POST', form: {} })).status).to.equal(403);
  });

  it('gives an asset another name when its content changes, and rejects a file of an unknown type', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'gatehouse-assets-'));
    const nameOf = async (content: string) => {
      await writeFile(join(directory, 'a.css'), content);
      return readAssets(directory).path('a.css');
    };
    expect(await nameOf('a{}')).not.to.equal(await nameOf('b{}'));
    await writeFile(join(directory, 'notes.txt'), '');
    expect(() => readAssets(directory)).to.throw('notes.txt');
    await rm(directory, { recursive: true });
  });

  it('keeps the style sheet below 20 KB and without references to other files', () => {
    const css = readFileSync(join(VIEWS, 'assets', 'gatehouse.css'), 'utf8');
    expect(Buffer.byteLength(css)).to.be.below(20_000);
    expect(css).not.to.match(/url\(|@import/);
  });

  it('throws for an asset that does not exist', () => {
    expect(() => path('missing.css')).to.throw('missing.css');
  });
});
