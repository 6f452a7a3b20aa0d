// Pages and e-mails fit in languages that need more room than English, or have a script of their own: one page of each
// template. The long tests measure all pages in all languages.
import { expect } from 'chai';
import { LANGUAGES } from '../../src/tenant/languages.ts';
import { PAGES } from '../http/pages.ts';
import { type Site, startSite } from '../http/site.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { layoutFaults, pathsIn } from './layout.ts';

describe('pages and e-mails', () => {
  let site: Site;
  let browser: TestBrowser;
  before(async () => {
    site = await startSite(PAGES);
    browser = await launchBrowser(site.ca, { draws: false });
  });
  after(async () => {
    await browser?.close();
    await site?.stop();
  });

  for (const tag of ['de', 'ar', 'ja', 'ta'].filter((one) => LANGUAGES.includes(one)))
    it(`fit at 320 and 1280 pixels: ${tag}`, async () => {
      const faults = await layoutFaults({ browser, site }, tag, pathsIn(tag, { isShort: true }));
      expect(faults.join('\n')).to.equal('');
    });
});
