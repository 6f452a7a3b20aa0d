// Every text on the pages for users and in our messages comes from a message: in a language that is made here, whose
// messages stand in brackets, no words are outside of them but the values that a page was given.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { MessageKind } from '../../src/capabilities/delivery/delivery-messages.ts';
import { readLocales } from '../../src/capabilities/pages/locales.ts';
import { AuthError } from '../../src/http/errors.ts';
import { PAGES } from '../http/pages.ts';
import { type Site, startSite, VIEWS } from '../http/site.ts';
import { createAgent } from '../support/agent.ts';
import { LOCALES, messagesIn } from './messages.ts';
import { KINDS, sampleMessages } from './sample-mail.ts';

/** Region XA is for such languages (CLDR). */
const TAG = 'en-XA';

/** Returns a message in brackets, in all of its forms. */
const bracketed = (message: string) => `⟦${message}⟧`;

/** What a page has besides messages: our own name, names of languages, and the time zone. */
const NAMES = ['Gatehouse', 'English', 'Deutsch', 'العربية', 'UTC'];

/** Elements whose content is code, or a value that a script needs. */
const APART = /<(script|style|svg|code|pre)\b[^>]*>.*?<\/\1>/gs;

const WORD = /\p{L}{3}/u;

const unescaped = (html: string) =>
  html.replaceAll(/&(?:#(\d+)|(amp|lt|gt|quot));/g, (_, code, name) =>
    name === undefined
      ? String.fromCodePoint(Number(code))
      : { amp: '&', lt: '<', gt: '>', quot: '"' }[name as 'amp' | 'lt' | 'gt' | 'quot'],
  );

/** Returns the texts of a page, those in attributes included. */
function textsIn(html: string): string[] {
  const attributes =
    / (?:title|aria-label|placeholder|alt|data-(?!copy|poll|rule|origin|options|webauthn|answer)[a-z-]+)="([^"]*)"/g;
  const plain = html.replaceAll(APART, '');
  const texts = [...plain.split(/<[^>]*>/), ...[...plain.matchAll(attributes)].map(([, text = '']) => text)];
  return texts.map(unescaped);
}

/** Returns a text without the messages in it, also those that are values of others. */
function outsideOfMessages(text: string): string {
  const shorter = text.replaceAll(/⟦[^⟦⟧]*⟧/g, '');
  return shorter === text ? text : outsideOfMessages(shorter);
}

/** Returns all texts in a model. */
function valuesIn(model: unknown): string[] {
  if (typeof model === 'string' || typeof model === 'number')
    return String(model)
      .split(/<[^>]*>/)
      .map(unescaped);
  return typeof model === 'object' && model !== null ? Object.values(model).flatMap(valuesIn) : [];
}

/** Returns the words of texts that neither a message nor a value says. */
function foreignIn(texts: readonly string[], values: readonly string[]): string[] {
  const known = [...values, ...NAMES].sort((a, b) => b.length - a.length).filter((one) => one.length > 1);
  return texts
    .map((text) => known.reduce((rest, one) => rest.replaceAll(one, ' '), outsideOfMessages(text)).trim())
    .filter((rest) => WORD.test(rest));
}

describe('a language in brackets', () => {
  let views: string;
  let site: Site;
  before(async () => {
    views = mkdtempSync(join(tmpdir(), 'gatehouse-pseudo-'));
    for (const name of readdirSync(VIEWS))
      if (name !== 'locales') symlinkSync(join(VIEWS, name), join(views, name));
    mkdirSync(join(views, 'locales', TAG), { recursive: true });
    cpSync(join(LOCALES, 'en'), join(views, 'locales', 'en'), { recursive: true });
    const messages = Object.entries(messagesIn('en')).map(([key, message]) => [key, bracketed(message)]);
    writeFileSync(join(views, 'locales', TAG, 'pages.json'), JSON.stringify(Object.fromEntries(messages)));
    site = await startSite(PAGES, { views });
    site.setTenant({
      tenant: { enabled_locales: [TAG, 'de'], friendly_name: 'Example', language_menu: true },
    });
  });
  after(async () => {
    await site?.stop();
    rmSync(views, { recursive: true });
  });

  for (const [path, page] of Object.entries(PAGES)) {
    if (/^\/(console|home|inbox|scripts|tokens)/.test(path)) continue;
    it(`has everything that ${path} says`, async () => {
      const { text } = await createAgent(site).get(path, { 'accept-language': TAG });
      const given = page instanceof AuthError ? [page.error, page.error_description] : valuesIn(page.model);
      expect(text).to.contain(`lang="${TAG}"`);
      expect(foreignIn(textsIn(text), ['Example', 'req-1', ...given])).to.deep.equal([]);
    });
  }

  for (const kind of Object.keys(KINDS) as MessageKind[])
    it(`has everything that the message ${kind} says`, async () => {
      const message = await sampleMessages(TAG, readLocales(join(views, 'locales')))(kind);
      const texts = 'html' in message ? [...textsIn(message.html), message.subject] : [];
      // Of the plain text, the address of a link and the signature's dashes are no words.
      const plain = message.text.replaceAll(/https?:\S+|@\S+ #\S+/g, '');
      const given = ['Example', 'Harbour Books', 'Ada Lovelace', message.to, ...valuesIn(KINDS[kind])];
      expect(foreignIn([...texts, plain], given)).to.deep.equal([]);
    });
});
