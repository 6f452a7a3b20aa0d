// Choosing a language for pages, messages, logout and phone prefixes.
import { readdirSync } from 'node:fs';
import { expect } from 'chai';
import {
  baseTag,
  byCanonicalTag,
  countryOf,
  matchLanguage,
  preferredTags,
} from '../../src/http/languages.ts';
import { createAgent } from '../support/agent.ts';
import { tenant, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import { seeded } from '../support/seeded.ts';
import { startServer, type TestServer } from '../support/server.ts';

const LOCALES = readdirSync(new URL('../../views/locales', import.meta.url));

/** Malformed lists, and lists that no browser sends. */
const BENT = [
  '*',
  '-',
  ';',
  ',,,;;;===',
  ';q=2',
  'de;q=',
  'de;q=NaN;q=Infinity',
  'en;q="0.5',
  '*-CH, x-klingon, i-default',
  '__proto__, constructor, toString',
  'de-u-co-phonebk-u-co-phonebk, de-t-t-t',
  '\u00ff\u00fe',
  'a'.repeat(8000),
  'de-'.repeat(2500),
  'a-'.repeat(4000),
  ','.repeat(8000),
  ' '.repeat(8000),
  '"'.repeat(8000),
  'q=;'.repeat(2500),
  Array.from({ length: 2000 }, (_, n) => `z${String.fromCharCode(97 + (n % 26))}-${1000 + n}`).join(','),
];

describe('languages', () => {
  for (const [list, tags] of [
    ['de-AT,de;q=0.9,en;q=0.8', ['de-AT', 'de', 'en']],
    ['en;q=0.1, de;q=0.9', ['de', 'en']],
    ['en; q=0.1 , de ; q = 0.9', ['de', 'en']],
    ['fr de  ar', ['fr', 'de', 'ar']],
    ['DE-at zh-hant-tw', ['de-AT', 'zh-Hant-TW']],
    ['de-DE-u-co-phonebk, en-x-pirate', ['de-DE', 'en']],
    ['de;q=0', []],
    ['de;q=x, en', ['en']],
    ['*', []],
    ['', []],
    ['fr;q=0.2, *;q=0.5, de;q=0.3', ['de', 'fr']],
    ['<script>, ../../etc, de', ['de']],
  ] as const) {
    it(`are read from a list, best first: ${JSON.stringify(list)}`, () => {
      expect(preferredTags([list])).to.deep.equal(tags);
    });
  }

  it('of an earlier list precede those of a later one, whatever their weights', () => {
    expect(preferredTags(['fr;q=0.1', 'de, en;q=0.5'])).to.deep.equal(['fr', 'de', 'en']);
  });

  for (const [lists, available, found] of [
    [['de-AT'], ['en', 'de'], 'de'],
    [['zh-Hant-TW'], ['en', 'zh-Hant'], 'zh-Hant'],
    [['pt-br'], ['PT-BR'], 'PT-BR'],
    [['de'], ['de-AT'], 'de-AT'],
    [['fr-CA', 'en'], ['en', 'fr-FR'], 'fr-FR'],
    [['fr-CH'], ['fr-CA', 'fr-FR'], 'fr-FR'],
    [['zh-Hant'], ['zh-CN', 'zh-HK', 'zh-TW'], 'zh-TW'],
    [['zh-MO'], ['zh-CN', 'zh-TW', 'zh-HK'], 'zh-HK'],
    [['zh-SG'], ['zh-TW', 'zh-CN'], 'zh-CN'],
    [['zh'], ['zh-TW', 'zh-CN'], 'zh-CN'],
    [['zh-TW'], ['en', 'zh-CN'], 'zh-CN'],
    [['pt'], ['pt-PT', 'pt-BR'], 'pt-BR'],
    [['pt-AO'], ['pt-BR', 'pt-PT'], 'pt-PT'],
    [['es-MX'], ['es', 'es-419'], 'es-419'],
    [['es-ES'], ['es-419', 'es'], 'es'],
    [['en-ZA'], ['en', 'en-GB'], 'en-GB'],
    [['no'], ['nn', 'nb'], 'nb'],
    [['nb'], ['no', 'nn'], 'no'],
    [['nn'], ['en', 'nb'], 'nb'],
    [['fil'], ['tl'], 'tl'],
    [['cnr'], ['sr'], 'sr'],
    [['sr-Latn'], ['sr'], 'sr'],
    [['am'], ['ar', 'en'], undefined],
    [['fr'], ['en', 'de'], undefined],
    [['fr', 'nl, de;q=0.3'], ['en', 'de'], 'de'],
    [[], ['en'], undefined],
    [['en'], [], undefined],
    [['und'], ['en'], undefined],
    [['de'], ['not a tag', 'de'], 'de'],
  ] as const) {
    it(`asked for by [${lists}] of [${available}]: ${found}`, () => {
      expect(matchLanguage(lists, byCanonicalTag(available))).to.equal(found);
    });
  }

  for (const [tag, base] of [
    ['fr-CA', 'fr-FR'],
    ['fr-FR', undefined],
    ['es-419', 'es'],
    ['es-MX', 'es-419'],
    ['en-GB', 'en'],
    ['pt-PT', 'pt-BR'],
    ['pt-BR', undefined],
    ['zh-HK', 'zh-TW'],
    ['zh-TW', undefined],
    ['no', 'nb'],
    ['nb', undefined],
    ['nn', undefined],
    ['sr-Latn', undefined],
  ] as const) {
    it(`of a region have what they lack from their base: ${tag} from ${base}`, () => {
      const all = [
        'en',
        'es',
        'es-419',
        'fr-FR',
        'nb',
        'no',
        'nn',
        'pt-BR',
        'pt-PT',
        'sr',
        'zh-CN',
        'zh-TW',
        'zh-HK',
      ];
      expect(baseTag(tag, all)).to.equal(base);
    });
  }

  for (const [list, country] of [
    ['de-AT,de;q=0.8', 'AT'],
    // As Firefox sends it in Germany: the second entry does not suggest an American phone number.
    ['de,en-US;q=0.7,en;q=0.3', 'DE'],
    ['en;q=0.5, fr-CH;q=0.9', 'CH'],
    ['es-419', 'ES'],
    ['ar', 'EG'],
    ['x-klingon, nl', 'NL'],
    ['*', 'US'],
    ['', 'US'],
  ] as const) {
    it(`suggest a country: ${JSON.stringify(list)} ${country}`, () => {
      expect(countryOf([list])).to.equal(country);
    });
  }

  it('are read from malformed lists without an error and without delay', () => {
    const random = seeded(7);
    const pieces = [
      'de',
      'en-US',
      '-',
      ';',
      'q=',
      '0.5',
      ',',
      ' ',
      '*',
      '"',
      '\\',
      'x-',
      'u-co',
      '\u00ff',
      '=',
    ];
    const piece = () => pieces[Math.floor(random() * pieces.length)] ?? '';
    const lists = Array.from({ length: 2000 }, () =>
      Array.from({ length: 1 + Math.floor(random() * 30) }, piece).join(''),
    );
    const began = process.cpuUsage();
    for (const list of [...BENT, ...lists]) {
      expect(matchLanguage([list, list], byCanonicalTag(['en', 'de'])), list).to.be.oneOf([
        'en',
        'de',
        undefined,
      ]);
      expect(countryOf([list]), list).to.match(/^[A-Z]{2}$/);
    }
    // One millisecond per list would already be slow.
    expect(process.cpuUsage(began).user / 1000).to.be.below(5000);
  });

  it('keep up to three variants, none twice, and what follows is cut off', () => {
    const tags = ['sl-rozaj-biske-1994', 'de-1996-1996', 'de-CH-1996-x-y', 'zh-cmn-Hans-CN', 'de-latn_x'];
    expect(preferredTags([tags.join(',')])).to.deep.equal([
      'sl-1994-biske-rozaj',
      'de-1996',
      'de-CH-1996',
      'zh',
      'de',
    ]);
  });

  describe('malformed language lists', () => {
    let server: TestServer;
    before(async () => {
      server = await startServer({ tenant });
    });
    after(() => server?.stop());

    it('are answered with a page in a language of the tenant, never with a server error', async () => {
      for (const list of BENT) {
        // The server accepts headers of 16 KiB in total.
        const header = list.slice(0, 6000);
        const headers = { 'accept-language': header, 'x-request-language': header };
        const agent = createAgent(server);
        const uiLocales = list.slice(0, 2000);
        const request = webRequest({ redirect_uri: WEB_CALLBACK, ui_locales: uiLocales });
        const answers = [
          await agent.get('/user/geoloc/country', headers),
          await agent.get('/v2/logout', { ...headers, accept: 'text/html' }),
          await agent.get(`/oidc/logout?${new URLSearchParams({ ui_locales: uiLocales })}`, headers),
          await agent.get(`/authorize?${new URLSearchParams(request)}`, headers),
        ];
        const login = answers.at(-1);
        if (login?.location) answers.push(await agent.get(login.location, headers));
        expect(answers[0]?.status, list.slice(0, 40)).to.equal(200);
        for (const { status, headers: sent } of answers) {
          expect(status, list.slice(0, 40)).to.be.below(500);
          if (sent['content-language'] !== undefined) {
            expect(sent['content-language']).to.be.oneOf(LOCALES);
          }
        }
      }
    });
  });
});
