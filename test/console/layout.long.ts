// All pages of the console that links lead to, on a running server, in each language that the console has: as
// test/locales/layout.long.ts, which has states that are slow to reach.
import { expect } from 'chai';
import { LANGUAGES } from '../../src/tenant/languages.ts';
import { faultsOf, hasConsole } from '../locales/layout.ts';
import { accessibilityFaults } from '../support/accessibility.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { openConsole, startConsole } from '../support/console.ts';
import { type FoundPage, findPages } from '../support/console-pages.ts';
import { tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

/** The languages to measure; all that have a console without it. */
const ASKED = process.env.LANGUAGES_TO_MEASURE?.split(' ');

describe('all pages of the console', function () {
  // Three hundred pages a language.
  this.timeout(3_600_000);
  let server: TestServer;
  let browser: TestBrowser;
  let pages: FoundPage[];
  let cookies: { name: string; value: string; url: string }[];
  before(async () => {
    const { rateLimits } = UNLIMITED.attackProtection;
    server = await startConsole({ tenant: { ...tenant, attackProtection: { rateLimits } } });
    browser = await launchBrowser(server.ca, { draws: false });
    const { agent, get } = await openConsole(server);
    pages = await findPages(async (path) => {
      const { status, text } = await get(path);
      return status === 200 ? text : undefined;
    });
    expect(pages.length).to.be.greaterThan(250);
    cookies = agent
      .cookies()
      .map(({ name, value, path }) => ({ name, value, url: new URL(path, server.url).href }));
  });
  after(async () => {
    await browser?.close();
    await server?.stop();
  });

  for (const tag of (ASKED ?? LANGUAGES).filter(hasConsole))
    it(`fit at 320 and 1280 pixels, and are accessible: ${tag}`, async () => {
      const context = await browser.newContext({ locale: tag, reducedMotion: 'reduce' });
      await context.addCookies(cookies);
      const page = await context.newPage();
      await page.goto(`${server.url}/console`);
      expect(await page.locator('html').getAttribute('lang')).to.equal(tag);
      expect(new URL(page.url()).pathname).to.equal('/console');
      const faults: string[] = [];
      for (const { path } of pages) {
        await page.goto(`${server.url}${path}`);
        faults.push(...(await faultsOf(page, path)));
        // A preview is a page of its own; axe’s driver never ends with one whose scripts are off and that is not drawn.
        await page.evaluate("document.querySelectorAll('iframe').forEach((frame) => frame.remove())");
        const found = (await accessibilityFaults(page)).filter((one) => !one.startsWith('color-contrast'));
        faults.push(...found.map((fault) => `${path}: ${fault}`));
      }
      await context.close();
      expect(faults.join('\n')).to.equal('');
    });
});
