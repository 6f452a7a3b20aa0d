import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { chooseLocale, type Locale, readLocales } from '../../src/capabilities/pages/locales.ts';
import { pageText } from '../../src/capabilities/pages/render.ts';
import { LOGOUT_SIGNED_OUT_PAGE } from '../../src/features/logout/logout-feature.ts';
import { FALLBACK, LANGUAGES, languagesIn } from '../../src/tenant/languages.ts';
import { baseOf, faultsOf } from '../locales/faults.ts';
import { messagesIn, messagesOf } from '../locales/messages.ts';
import { createAgent } from '../support/agent.ts';
import { PAGES } from './pages.ts';
import { type Site, type SitePage, sitePage, startSite, VIEWS } from './site.ts';

const LOCALES = join(VIEWS, 'locales');
const UUID = /[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-/;
describe('locales', () => {
  it('include English, German and Arabic', () => {
    expect(LANGUAGES).to.include.members(['en', 'de', 'ar']);
    expect(LANGUAGES[0]).to.equal('en');
  });

  for (const tag of LANGUAGES) {
    it(`are complete for users, and have the values, plural forms and marks of their language: ${tag}`, () => {
      expect(faultsOf(tag)).to.deep.equal([]);
    });
  }

  it('have notes for translators that belong to messages', () => {
    const keys = Object.keys(messagesIn(FALLBACK));
    for (const note of Object.keys(messagesIn(FALLBACK, 'notes')))
      expect(
        note === '' ||
          keys.some((key) => key === note || (note.endsWith('.*') && key.startsWith(note.slice(0, -1)))),
        note,
      ).to.equal(true);
  });

  it('are in English where the console of a language lacks a message', () => {
    const locales = readLocales(LOCALES);
    for (const tag of LANGUAGES) {
      const own = messagesOf(tag);
      const lacks = Object.keys(messagesIn(FALLBACK, 'console')).find((key) => !Object.hasOwn(own, key));
      if (lacks === undefined || tag === FALLBACK || baseOf(tag) !== undefined) continue;
      expect(locales.get(tag)?.isTranslated(lacks), tag).to.equal(false);
      expect(locales.get(tag)?.has(lacks), tag).to.equal(true);
    }
  });

  describe('in a folder of another language', () => {
    let views: string;
    before(() => {
      views = mkdtempSync(join(tmpdir(), 'gatehouse-views-'));
      for (const name of readdirSync(VIEWS))
        if (name !== 'locales') symlinkSync(join(VIEWS, name), join(views, name));
      mkdirSync(join(views, 'locales'));
      cpSync(join(LOCALES, 'en'), join(views, 'locales', 'en'), { recursive: true });
    });
    after(() => rmSync(views, { recursive: true }));
    const add = (tag: string, console: object) => {
      const folder = join(views, 'locales', tag);
      mkdirSync(join(folder, 'console'), { recursive: true });
      writeFileSync(join(folder, 'pages.json'), JSON.stringify({ 'login.heading': `Heading in ${tag}` }));
      writeFileSync(join(folder, 'console', 'any.json'), JSON.stringify(console));
    };

    it('are found, with the direction of their script and English in place of what they lack', () => {
      add('it', { 'console.nav.users': 'Utenti' });
      add('he', {});
      const locales = readLocales(join(views, 'locales'));
      expect([...locales.keys()]).to.deep.equal(['en', 'he', 'it']);
      expect(locales.get('he')?.direction).to.equal('rtl');
      const italian = locales.get('it');
      expect(italian?.direction).to.equal('ltr');
      expect(italian?.text('console.nav.users')).to.equal('Utenti');
      expect(italian?.text('console.nav.log')).to.equal('Log');
      expect(italian?.has('console.nav.log')).to.equal(true);
      expect(italian?.has('constructor')).to.equal(false);
      // The plural form is that of English, which Japanese does not have.
      add('ja', {});
      const japanese = readLocales(join(views, 'locales')).get('ja');
      expect(japanese?.text('rule.lengthAtLeast', { count: 1 })).to.equal('At least 1 character');
    });

    it('are read from no file before their first message, and the console apart', () => {
      add('it', {});
      writeFileSync(join(views, 'locales', 'it', 'console', 'any.json'), '[');
      const italian = readLocales(join(views, 'locales')).get('it');
      expect(italian?.text('login.heading')).to.equal('Heading in it');
      expect(() => italian?.text('console.nav.users')).to.throw(SyntaxError);
    });

    it('are marked as English on a page where they are', async () => {
      add('it', { 'console.nav.users': 'Utenti' });
      const page = PAGES['/console-administrators'] as SitePage;
      const model = {
        ...page.model,
        title: pageText(
          readLocales(join(views, 'locales')).get('it') as Locale,
          'console.nav.administrators',
        ),
      };
      // What strangers write is no mark, whatever it contains.
      const written = '\uFDD0[x]Owner[x]\uFDD1';
      const pages = {
        '/page': { ...page, model },
        '/plain': page,
        '/written': { ...page, model: { ...page.model, title: written } },
      };
      const site = await startSite(pages, { views });
      try {
        site.setTenant({ tenant: { enabled_locales: ['en', 'it'] } });
        const { text } = await createAgent(site).get('/page', { 'accept-language': 'it' });
        const inEnglish = (words: string) => `<span lang="en" dir="ltr">${words}</span>`;
        expect(text).to.contain('<html lang="it" dir="ltr">');
        expect(text)
          .to.contain(`<h1>${inEnglish('Administrators')}</h1>`)
          .and.to.contain('>Utenti<');
        // Neither can contain an element.
        expect(text)
          .to.match(/<title>Administrators \|/)
          .and.to.match(/<option [^>]*>Owner<\/option>/);
        expect(text).to.contain('aria-label="Console"');
        expect(text).to.not.match(UUID);
        const other = await createAgent(site).get('/written', { 'accept-language': 'it' });
        expect(other.text).to.contain(`<h1>${written}</h1>`);
        const english = await createAgent(site).get('/plain', { 'accept-language': 'en' });
        expect(english.text).to.not.contain('<span lang="en"');
      } finally {
        await site.stop();
      }
    });

    it('are refused under a name that is no language tag, and without English', () => {
      const other = mkdtempSync(join(tmpdir(), 'gatehouse-locales-'));
      try {
        expect(() => languagesIn(other)).to.throw('has no en');
        for (const name of ['en', 'pt-BR', 'cnr']) mkdirSync(join(other, name));
        writeFileSync(join(other, 'notes.txt'), '');
        expect(languagesIn(other)).to.deep.equal(['en', 'cnr', 'pt-BR']);
        mkdirSync(join(other, 'pt_BR'));
        expect(() => languagesIn(other)).to.throw('pt_BR is not named by a language tag');
      } finally {
        rmSync(other, { recursive: true });
      }
    });
  });

  it('insert values unchanged, isolated where the direction differs', () => {
    const locales = readLocales(LOCALES);
    const lead = (tag: string, client: string) => locales.get(tag)?.text('login.lead', { client });
    expect(lead('en', '$& {client}')).to.equal('Log in to continue to $& {client}.');
    expect(lead('en', 'متجر')).to.equal('Log in to continue to \u2068متجر\u2069.');
    expect(lead('ar', 'Shop')).to.contain('\u2068Shop\u2069');
  });

  it('insert no value that reorders the text after it', () => {
    const locales = readLocales(LOCALES);
    const lead = (tag: string, client: string) => locales.get(tag)?.text('login.lead', { client });
    // Marks, embeddings, overrides and isolates, which a value may begin, or end before its time.
    expect(lead('en', 'Shop\u202e')).to.equal('Log in to continue to Shop.');
    expect(lead('en', 'Shop\u2067\u202b')).to.equal('Log in to continue to Shop.');
    expect(lead('en', 'Shop\u200f')).to.equal('Log in to continue to \u2068Shop\u200f\u2069.');
    expect(lead('ar', 'Shop\u2069\u202d'))
      .to.contain('\u2068Shop\u2069')
      .and.to.not.match(/\u2069{2}|\u202d/);
    // Samaritan, which few fonts show.
    expect(lead('en', 'ࠀ')).to.equal('Log in to continue to \u2068ࠀ\u2069.');
  });

  it('choose the plural form by the number', () => {
    const locales = readLocales(LOCALES);
    const least = (tag: string, count: number) => locales.get(tag)?.text('rule.lengthAtLeast', { count });
    expect(least('en', 1)).to.equal('At least 1 character');
    expect(least('en', 8)).to.equal('At least 8 characters');
    expect(least('ar', 2)).to.equal('حرفان على الأقل');
    expect(least('ar', 12)).to.contain('حرفًا');
    expect(least('en', 1200)).to.equal('At least 1,200 characters');
  });

  it('choose by a name, which is isolated only where it stands in the text', () => {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-choice-'));
    try {
      mkdirSync(join(folder, 'en'));
      const choice = "{kind, select, app {the app {name}} other {'{'{kind}'}'}}";
      writeFileSync(join(folder, 'en', 'pages.json'), JSON.stringify({ choice }));
      const said = (values: object) =>
        readLocales(folder)
          .get('en')
          ?.text('choice', { ...values });
      expect(said({ kind: 'app', name: 'متجر' })).to.equal('the app \u2068متجر\u2069');
      expect(said({ kind: 'متجر', name: '' })).to.equal('{\u2068متجر\u2069}');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('throw for an unknown key', () => {
    expect(() => readLocales(LOCALES).get('de')?.text('no.such.key')).to.throw('no.such.key');
  });

  describe('the locale of a request', () => {
    const locales = readLocales(LOCALES);
    it('has a tag that headers and Intl take, whatever the tenant has named it', () => {
      for (const named of ['de-\n', 'de-"><x', 'de-x', 'de-a-b-'])
        expect(chooseLocale(locales, [named], []).tag, named).to.equal('de');
      expect(chooseLocale(locales, ['de-Latn-AT'], []).tag).to.equal('de-Latn-AT');
    });

    for (const [preferred, enabled, chosen] of [
      [['de'], ['en', 'de'], 'de'],
      [['DE-at'], ['en', 'de'], 'de'],
      [['fr', 'de'], ['en', 'de'], 'de'],
      [['de'], ['en', 'ar'], 'en'],
      [['fr'], ['ar', 'en'], 'ar'],
      [[], ['de', 'en'], 'de'],
      [['xx'], ['xx', 'de'], 'de'],
      [['de'], ['xx'], 'en'],
      [['-', '', '*', 'de-'], ['en', 'de'], 'de'],
      // A tenant's tag that is the name of no folder is served by the nearest one, and keeps its own dates.
      [['de-AT'], ['en', 'de-CH'], 'de-CH'],
      [['xx'], ['ar-SA', 'en'], 'ar-SA'],
      [['de'], ['de_DE', 'en'], 'en'],
    ] as const) {
      it(`is ${chosen} for [${preferred}] when [${enabled}] are enabled`, () => {
        expect(chooseLocale(locales, enabled, preferred).tag).to.equal(chosen);
      });
    }

    let site: Site;
    before(async () => {
      site = await startSite(PAGES);
    });
    after(() => site?.stop());
    const language = async (path: string, accept: string) =>
      (await createAgent(site).get(path, { 'accept-language': accept })).headers['content-language'];

    it('follows the preferences of Accept-Language', async () => {
      expect(await language('/login', 'xx;q=0.9, ar;q=0.7, de-CH;q=0.8, *;q=0.1')).to.equal('de');
    });

    it('follows ui_locales before Accept-Language', async () => {
      site.show('/asked', sitePage(LOGOUT_SIGNED_OUT_PAGE, {}, { uiLocales: 'xx  ar' }));
      expect(await language('/asked', 'de')).to.equal('ar');
      site.show('/asked', sitePage(LOGOUT_SIGNED_OUT_PAGE, {}, { uiLocales: 'xx' }));
      expect(await language('/asked', 'de')).to.equal('de');
    });

    it("is one of the tenant's locales, the first when none matches", async () => {
      site.setTenant({ tenant: { enabled_locales: ['de', 'en'] } });
      expect(await language('/login', 'ar')).to.equal('de');
      expect(await language('/login', '')).to.equal('de');
      expect(await language('/login', 'en')).to.equal('en');
    });
  });
});
