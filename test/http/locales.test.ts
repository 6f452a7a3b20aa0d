import { readdirSync, readFileSync } from 'node:fs';
import { join, parse } from 'node:path';
import { expect } from 'chai';
import { chooseLocale, type Message, readLocales } from '../../src/capabilities/pages/locales.ts';
import { createAgent } from '../support/agent.ts';
import { PAGES } from './pages.ts';
import { type Site, startSite, VIEWS } from './site.ts';

const LOCALES = join(VIEWS, 'locales');
/** The messages of the console are in directories by area. */
const paths = readdirSync(LOCALES, { recursive: true, encoding: 'utf8' }).filter((one) =>
  one.endsWith('.json'),
);
const files = [...new Set(paths.map((path) => parse(path).name))];
const messagesOf = (tag: string): Record<string, Message> =>
  Object.fromEntries(
    paths
      .filter((path) => parse(path).name === tag)
      .flatMap((path) => Object.entries<Message>(JSON.parse(readFileSync(join(LOCALES, path), 'utf8')))),
  );
const formsOf = (message: Message): string[] =>
  typeof message === 'string' ? [message] : Object.values(message);
const placesOf = (text: string): string[] =>
  [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '').sort();

describe('locales', () => {
  const english = messagesOf('en');

  it('include English, German and Arabic', () => {
    expect(files).to.include.members(['en', 'de', 'ar']);
  });

  for (const tag of files) {
    it(`have every message: ${tag}`, () => {
      expect(Object.keys(messagesOf(tag))).to.have.members(Object.keys(english));
    });

    it(`have the same placeholders in every message: ${tag}`, () => {
      for (const [key, message] of Object.entries(messagesOf(tag))) {
        const wanted = placesOf(formsOf(english[key] ?? '').at(-1) ?? '');
        for (const form of formsOf(message)) {
          // A plural form may spell the number out.
          const optional = typeof message === 'string' ? [] : ['count'];
          const places = placesOf(form);
          expect(wanted, `${key}: ${form}`).to.include.members(places);
          expect(places, `${key}: ${form}`).to.include.members(wanted.filter((p) => !optional.includes(p)));
        }
      }
    });

    it(`have the plural forms of their language: ${tag}`, () => {
      const { pluralCategories } = new Intl.PluralRules(tag).resolvedOptions();
      for (const [key, message] of Object.entries(messagesOf(tag))) {
        if (typeof message !== 'string') expect(Object.keys(message), key).to.have.members(pluralCategories);
      }
    });
  }

  it('insert values unchanged, isolated where the direction differs', () => {
    const locales = readLocales(LOCALES);
    const lead = (tag: string, client: string) => locales.get(tag)?.text('login.lead', { client });
    expect(lead('en', '$& {client}')).to.equal('Log in to continue to $& {client}.');
    expect(lead('en', 'متجر')).to.equal('Log in to continue to \u2068متجر\u2069.');
    expect(lead('ar', 'Shop')).to.contain('\u2068Shop\u2069');
  });

  it('choose the plural form by the number', () => {
    const locales = readLocales(LOCALES);
    const least = (tag: string, count: number) => locales.get(tag)?.text('rule.lengthAtLeast', { count });
    expect(least('en', 1)).to.equal('At least 1 character');
    expect(least('en', 8)).to.equal('At least 8 characters');
    expect(least('ar', 2)).to.equal('حرفان على الأقل');
    expect(least('ar', 12)).to.contain('حرفًا');
  });

  it('throw for an unknown key', () => {
    expect(() => readLocales(LOCALES).get('de')?.text('no.such.key')).to.throw('no.such.key');
  });

  describe('the locale of a request', () => {
    const locales = readLocales(LOCALES);
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
      expect(await language('/login', 'fr;q=0.9, ar;q=0.7, de-CH;q=0.8, *;q=0.1')).to.equal('de');
    });

    it('follows ui_locales before Accept-Language', async () => {
      const [template, model] = ['logout/signed-out', {}];
      site.show('/asked', { template, model, uiLocales: 'fr  ar' });
      expect(await language('/asked', 'de')).to.equal('ar');
      site.show('/asked', { template, model, uiLocales: 'fr' });
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
