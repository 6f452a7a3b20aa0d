// How the pages look and behave in a real browser, in states that are slow to reach with a whole server.

import { expect } from 'chai';
import type { BrowserContextOptions, Page } from 'playwright-core';
import { LOGIN_PAGE } from '../../src/features/connections/database/base/database-pages.ts';
import { nameField } from '../../src/features/connections/name-field.ts';
import {
  accessibilityFaults,
  BY_COLOUR,
  faultsInAllLooks,
  injectAxe,
  type Judged,
  NARROWEST,
  sidewaysScroll,
  WIDE,
} from '../support/accessibility.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { PAGES } from './pages.ts';
import { type Site, sitePage, startSite } from './site.ts';

/** One page of each template. */
const TEMPLATES = new Set(
  new Map(
    Object.entries(PAGES).map(([path, page]) => ['page' in page ? page.page.template : '', path] as const),
  ).values(),
);

describe('the pages', () => {
  let site: Site;
  let browser: TestBrowser;
  let undrawn: TestBrowser;

  before(async () => {
    site = await startSite(PAGES);
    browser = await launchBrowser(site.ca);
    undrawn = await launchBrowser(site.ca, { draws: false });
  });
  after(async () => {
    await browser?.close();
    await undrawn?.close();
    await site?.stop();
  });
  afterEach(() => site.setTenant({}));

  /** Opens a page in a new browser context. */
  const inBrowser = async (
    options: BrowserContextOptions,
    use: (page: Page) => Promise<void>,
    from = browser,
  ) => {
    const context = await from.newContext({ viewport: WIDE, ...options });
    await use(await context.newPage());
    await context.close();
  };
  /** As `inBrowser`, but the page is not drawn: it is only asked for its styles and layout, or checked by axe. */
  const undrawnIn = (options: BrowserContextOptions, use: (page: Page) => Promise<void>) =>
    inBrowser(options, use, undrawn);

  describe('each opened once in German, the language with the longest words', () => {
    const faults: string[] = [];
    const judged: Judged = { light: new Set(), dark: new Set() };
    const sideways: Record<string, number> = {};
    const reported: string[] = [];
    const origins = new Set<string>();

    before(async function visits() {
      // Colours must not be in transition to the other scheme while they are checked.
      await undrawnIn({ locale: 'de', colorScheme: 'light', reducedMotion: 'reduce' }, async (page) => {
        await injectAxe(page);
        page.on('console', (message) => reported.push(message.text()));
        page.on('pageerror', (error) => reported.push(String(error)));
        page.on('request', (request) => origins.add(new URL(request.url()).origin));
        for (const path of Object.keys(PAGES)) {
          await page.setViewportSize(WIDE);
          await page.goto(site.url + path);
          const found = await faultsInAllLooks(page, undefined, judged);
          faults.push(...found.map((fault) => `${path}: ${fault}`));
          await page.setViewportSize(NARROWEST);
          sideways[path] = await sidewaysScroll(page);
        }
      });
    });

    it('have no accessibility faults, light and dark, wide and on a phone', () => {
      expect(faults).to.deep.equal([]);
    });

    it('fit on the narrowest phone: de', () => {
      expect(sideways).to.deep.equal(Object.fromEntries(Object.keys(PAGES).map((path) => [path, 0])));
    });

    it('log nothing to the console: no resource is missing and no policy is violated', () => {
      // The browser logs this for every page with an error status.
      const ofPages = reported.filter(
        (text) => !text.startsWith('Failed to load resource: the server responded'),
      );
      expect(ofPages).to.deep.equal([]);
    });

    it('send no request to another origin', () => {
      expect([...origins].filter((origin) => origin !== 'null')).to.deep.equal([site.url]);
    });
  });

  for (const colorScheme of ['light', 'dark'] as const) {
    for (const [primary, page_background] of [
      ['#000000', '#ffffff'],
      ['#ffffff', '#000000'],
      ['#ffd400', '#101828'],
      ['#767676', '#808080'],
    ]) {
      it(`keep their contrast: ${colorScheme}, ${primary} on ${page_background}`, async () => {
        site.setTenant({ branding: { colors: { primary, page_background } } });
        await undrawnIn({ colorScheme }, async (page) => {
          await injectAxe(page);
          for (const path of ['/login-choices', '/signup-failed', '/account', '/home']) {
            await page.goto(site.url + path);
            expect(await accessibilityFaults(page, BY_COLOUR), path).to.deep.equal([]);
          }
        });
      });
    }
  }

  for (const locale of ['en', 'ar']) {
    it(`fit on the narrowest phone, one of each template: ${locale}`, async () => {
      await undrawnIn({ locale, viewport: NARROWEST }, async (page) => {
        for (const path of TEMPLATES) {
          await page.goto(site.url + path);
          expect(await sidewaysScroll(page), path).to.equal(0);
        }
      });
    });
  }

  it('are reached by keyboard in reading order', async () => {
    await inBrowser({}, async (page) => {
      await page.goto(`${site.url}/login-choices`);
      await page.locator('#username:focus').waitFor();
      const order: string[] = [];
      for (let stops = 0; stops < 8; stops++) {
        const focused = page.locator(':focus');
        order.push((await focused.getAttribute('name')) ?? (await focused.textContent())?.trim() ?? '');
        await page.keyboard.press('Tab');
      }
      expect(order).to.deep.equal([
        'username',
        'password',
        'Show',
        'Forgot your password?',
        'Continue',
        'Continue with Example Works',
        'Text me a code',
        'Sign up',
      ]);
    });
  });

  it('keep more than five connections behind a button, which works by keyboard and without scripts', async () => {
    await inBrowser({ javaScriptEnabled: false }, async (page) => {
      await page.goto(`${site.url}/connections-many`);
      expect(await page.locator('.connections a:visible').count()).to.equal(5);
      await page.getByRole('link', { name: 'Continue with Ember' }).focus();
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      expect(await page.locator('.connections a:visible').count()).to.equal(8);
      await page.keyboard.press('Tab');
      expect((await page.locator(':focus').textContent())?.trim()).to.equal('Email me a code');
    });
  });

  it('show a connection with its own picture, the mark of its strategy, or the first letter of its name', async () => {
    await inBrowser({}, async (page) => {
      await page.goto(`${site.url}/connections`);
      const pictures = page.locator('.connections img');
      expect(await pictures.first().getAttribute('src')).to.match(/^data:/);
      expect(await pictures.nth(1).getAttribute('src')).to.match(/^\/assets\/marks\/github\.[\w-]{12}\.svg$/);
      expect(await pictures.nth(1).evaluate((image: any) => image.naturalWidth > 0)).to.equal(true); // any: no types of the DOM
      expect(await page.locator('.connections .letter').getAttribute('data-letter')).to.equal('V');
    });
  });

  it('show edges when colours are forced', async () => {
    await inBrowser({ forcedColors: 'active' }, async (page) => {
      await page.goto(`${site.url}/connections-many`);
      const edges = await page.locator('.button').evaluateAll(
        (buttons) => buttons.map((one: any) => (globalThis as any).getComputedStyle(one).borderTopStyle), // any: no types of the DOM
      );
      expect(new Set(edges)).to.deep.equal(new Set(['solid']));
    });
  });

  for (const javaScriptEnabled of [true, false]) {
    const scripts = javaScriptEnabled ? 'with scripts' : 'without scripts';

    it(`set the focus where the user continues: ${scripts}`, async () => {
      await inBrowser({ javaScriptEnabled }, async (page) => {
        for (const [path, focused] of [
          ['/login', '#username'],
          ['/login-hinted', '#password'],
          ['/login-wrong', '#alert'],
          ['/signup', '#email'],
          ['/signup-failed', '#alert'],
        ] as const) {
          await page.goto(site.url + path);
          await page.locator(`${focused}:focus`).waitFor();
        }
      });
    });

    it(`post the entered values: ${scripts}`, async () => {
      await inBrowser({ javaScriptEnabled }, async (page) => {
        await page.goto(`${site.url}/signup-username`);
        await page.getByLabel('Email address').fill('ada@example.test');
        await page.getByLabel('Username').fill('ada');
        await page.getByLabel('Password', { exact: true }).fill('pass phrase');
        await page.getByRole('button', { name: 'Create account' }).click();
        await page.getByText('accepted').waitFor();
        expect(site.posted.at(-1)).to.include({
          email: 'ada@example.test',
          username: 'ada',
          password: 'pass phrase',
        });
        await page.goto(`${site.url}/consent`);
        await page.getByRole('button', { name: 'Decline' }).click();
        await page.getByText('accepted').waitFor();
        expect(site.posted.at(-1)).to.include({ decision: 'deny' });
      });
    });
  }

  it('link each fault to its field, and describe the field with the fault', async () => {
    await inBrowser({}, async (page) => {
      await page.goto(`${site.url}/signup-failed`);
      await page.getByRole('link', { name: 'This is not an email address.' }).click();
      const email = page.getByLabel('Email address');
      expect(await email.getAttribute('aria-invalid')).to.equal('true');
      expect(await email.getAttribute('aria-describedby')).to.equal('email-fault');
      await page.locator('#email:focus').waitFor();
      const rules = await page.locator('#rules > li').allTextContents();
      expect(rules[0]).to.match(/At least 10 characters\s+still missing/);
      const kinds = await page.locator('#rules .kinds > li').allTextContents();
      expect(kinds.map((kind) => kind.includes('done'))).to.deep.equal([true, false, true, false]);
    });
  });

  it('mark their fields for password managers', async () => {
    await inBrowser({}, async (page) => {
      const autocomplete = (id: string) => page.locator(`#${id}`).getAttribute('autocomplete');
      await page.goto(`${site.url}/login`);
      expect([await autocomplete('username'), await autocomplete('password')]).to.deep.equal([
        'username',
        'current-password',
      ]);
      await page.goto(`${site.url}/signup-username`);
      expect([
        await autocomplete('email'),
        await autocomplete('username'),
        await autocomplete('password'),
      ]).to.deep.equal(['email', 'username', 'new-password']);
    });
  });

  it('give lines room in scripts with marks above and below, and in Urdu for Nastaliq', async () => {
    site.setTenant({ tenant: { enabled_locales: ['en', 'ta', 'ur'] } });
    const room = async (locale: string) => {
      let found: number[] = [];
      await undrawnIn({ locale }, async (page) => {
        await page.goto(`${site.url}/login`);
        found = await page.evaluate(`['h1', '.lead'].map((selector) => {
          const { lineHeight, fontSize } = getComputedStyle(document.querySelector(selector));
          return Math.round(parseFloat(lineHeight) / parseFloat(fontSize) * 100) / 100;
        })`);
      });
      return found;
    };
    expect(await room('en')).to.deep.equal([1.15, 1.5]);
    expect(await room('ta')).to.deep.equal([1.3, 1.5]);
    expect(await room('ur')).to.deep.equal([1.8, 1.9]);
  });

  it('count down in units of the page’s language, which the browser does not know', async () => {
    site.setTenant({ tenant: { enabled_locales: ['hy', 'fa'] } });
    for (const [locale, wait] of [
      ['hy', /՝ \d+ վրկ/],
      ['fa', /[۰-۹]+ ثانیه/],
    ] as const)
      await undrawnIn({ locale }, async (page) => {
        await page.goto(`${site.url}/passwordless-code`);
        expect(await page.locator('[data-cooldown]').textContent()).to.match(wait);
      });
  });

  it('post once, however often the button is pressed', async () => {
    await inBrowser({}, async (page) => {
      await page.goto(`${site.url}/login-hinted`);
      await page.getByLabel('Password', { exact: true }).fill('secret');
      const prevented = await page.evaluate(() => {
        const { document } = globalThis as any;
        const seen: boolean[] = [];
        (globalThis as any).addEventListener('submit', (event: any) => {
          seen.push(event.defaultPrevented);
          event.preventDefault();
        });
        for (let presses = 0; presses < 3; presses++) document.querySelector('.primary').click();
        return seen;
      });
      expect(prevented).to.deep.equal([false, true, true]);
    });
  });

  it('hide a shown password before posting it, so that the browser does not remember it as text', async () => {
    await inBrowser({}, async (page) => {
      await page.goto(`${site.url}/login-hinted`);
      await page.getByLabel('Password', { exact: true }).fill('secret');
      await page.getByRole('button', { name: 'Show password' }).click();
      await page.evaluate(
        "document.forms[0].addEventListener('submit', (event) => { event.preventDefault(); document.title = document.getElementById('password').type; })",
      );
      await page.getByRole('button', { name: 'Continue' }).click();
      expect(await page.title()).to.equal('password');
    });
  });

  it('copy a client ID', async () => {
    await inBrowser({ permissions: ['clipboard-read', 'clipboard-write'] }, async (page) => {
      await page.goto(`${site.url}/home`);
      const button = page.getByRole('button', { name: 'Copy example-spa' });
      await button.click();
      await page.getByText('Copied').waitFor();
      expect(await page.evaluate('navigator.clipboard.readText()')).to.equal('example-spa');
    });
  });

  it('show all values as text', async () => {
    const nasty = `"><script>document.title='run'</script>{{ 7 | times: 7 }}{{7*7}}{% raw %}<b>`;
    site.setTenant({
      tenant: { friendly_name: nasty, picture_url: `javascript:alert('${nasty}')` },
      branding: { terms_url: "javascript:document.title='run'", logo_url: `data:text/html,${nasty}` },
    });
    site.show(
      '/nasty',
      sitePage(LOGIN_PAGE, {
        client: { name: nasty, logo: nasty },
        names: nameField(['email']),
        values: { username: nasty },
        signupUrl: nasty,
        connections: [{ text: 'login.with', name: nasty, url: nasty }],
      }),
    );
    await inBrowser({}, async (page) => {
      await page.goto(`${site.url}/nasty`);
      expect(await page.title()).to.equal(`Log in | ${nasty}`);
      expect(await page.locator('.lead').textContent()).to.contain(nasty);
      expect(await page.locator('#username').inputValue()).to.equal(nasty);
      expect(await page.locator('.brand').textContent()).to.contain(nasty);
      expect(await page.locator('main script, main b').count()).to.equal(0);
      expect(await page.getByRole('link', { name: 'Terms' }).count()).to.equal(0);
      expect(await page.locator('.logo').count()).to.equal(0);
    });
  });

  it("show the tenant's logo with its name, and the application's beside it", async () => {
    const logo_url = 'data:image/svg+xml,%3Csvg xmlns="http://www.w3.org/2000/svg"/%3E';
    site.setTenant({ tenant: { friendly_name: 'Harbour' }, branding: { logo_url } });
    await inBrowser({}, async (page) => {
      await page.goto(`${site.url}/consent`);
      expect(await page.getByRole('img', { name: 'Harbour' }).getAttribute('src')).to.equal(logo_url);
      expect(await page.locator('img.client').count()).to.equal(1);
    });
  });

  it('tell what to do about an error, and what to report', async () => {
    await inBrowser({}, async (page) => {
      for (const [path, heading, code] of [
        ['/error', 'This link does not work', 'invalid_request'],
        ['/error-server', 'Something went wrong', 'server_error'],
      ] as const) {
        const answer = await page.goto(site.url + path);
        expect(answer?.status()).to.equal(path === '/error' ? 400 : 500);
        await page.getByRole('heading', { name: heading }).waitFor();
        await page.getByText(code).waitFor();
        await page.getByText('req-1').waitFor();
        expect(await page.locator('script').count()).to.equal(0);
      }
    });
  });

  describe('in Arabic', () => {
    it('read from right to left, and isolate names of the other direction', async () => {
      await inBrowser({ locale: 'ar' }, async (page) => {
        await page.goto(`${site.url}/login-choices`);
        expect(await page.locator('html').getAttribute('dir')).to.equal('rtl');
        expect(await page.locator('.lead').textContent()).to.contain('\u2068Harbour Books\u2069');
        const box = async (selector: string) => {
          const found = await page.locator(selector).boundingBox();
          if (found === null) throw new Error(`${selector} is not shown`);
          return found;
        };
        const [field, toggle] = [await box('#password'), await box('.toggle')];
        expect(toggle.x - field.x).to.be.below(field.width / 2);
        expect(await accessibilityFaults(page)).to.deep.equal([]);
      });
    });
  });
});
