// All pages and e-mails in all languages, at 320 and 1280 pixels: nothing is too wide or cut off, and axe finds no fault. The
// fonts are those of the machine: without one for a script, boxes are measured (docs/do/translating.md).
import { expect } from 'chai';
import type { Page } from 'playwright-core';
import { LANGUAGES } from '../../src/tenant/languages.ts';
import { PAGES } from '../http/pages.ts';
import { type Site, startSite } from '../http/site.ts';
import { accessibilityFaults } from '../support/accessibility.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { layoutFaults, pathsIn } from './layout.ts';

/** The languages to measure; all without it. */
const ASKED = process.env.LANGUAGES_TO_MEASURE?.split(' ');

describe('all pages and e-mails', () => {
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

  for (const tag of ASKED ?? LANGUAGES)
    it(`fit at 320 and 1280 pixels, and are accessible: ${tag}`, async () => {
      // Colours do not depend on the language (test/http/views.test.ts).
      const examine = async (page: Page) =>
        (await accessibilityFaults(page)).filter((fault) => !fault.startsWith('color-contrast'));
      const faults = await layoutFaults({ browser, site }, tag, pathsIn(tag), examine);
      expect(faults.join('\n')).to.equal('');
    });
});
