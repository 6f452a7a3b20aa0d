// Every text on the console's pages, including options, errors and responses to forms, must come from a message in
// the reader's language, or be a known name, or be marked as code.
import { readdirSync } from 'node:fs';
import { expect } from 'chai';
import { kindsByGroup } from '../../src/features/console/connections/kinds.ts';
import { languageNames } from '../../src/http/languages.ts';
import { FALLBACK } from '../../src/tenant/languages.ts';
import { messagesOf, parsed } from '../locales/messages.ts';
import { openConsole, startConsole } from '../support/console.ts';
import { findPages } from '../support/console-pages.ts';
import { tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

/** Elements with code or user-supplied text, and their content. */
const APART = /<(head|script|style|svg|code|pre|bdi|textarea|time)\b[^>]*>.*?<\/\1>/gs;
/** An element without child elements that sets the direction of its text. */
const OWN_DIRECTION = /<(\w+)\b[^>]* dir="(?:ltr|auto)"[^>]*>[^<]*<\/\1>/g;

const NAMES: ReadonlySet<string> = new Set([
  ...kindsByGroup().flatMap(({ kinds }) => kinds.map(({ label }) => label ?? '')),
  ...['OpenID Connect', 'SAML 2.0', 'ADFS', 'PingFederate', 'SCIM', 'JSON', 'https://'],
  // The languages, each in itself.
  ...languageNames(readdirSync(new URL('../../views/locales', import.meta.url))).values(),
  ...['CSV', 'EdDSA', 'A256GCM', 'All Applications', 'Gatehouse'],
  // Names of the example applications and APIs.
  ...[tenant.tenant?.friendly_name ?? '', ...tenant.clients.map(({ name }) => name)],
  ...tenant.resourceServers.map(({ name }) => name),
  ...['Auth0 Management API', 'Auth0 My Account API'],
]);
/** Names of members and values of the API. */
const OF_THE_API = /^[a-z0-9_.-]+$/;
/** A word, as opposed to an abbreviation. */
const WORD = /\p{L}{3}/u;

/** The end of titles: the name of the tenant, or ours after a form has reset it. */
const TITLE = / \| (?:Test tenant|Gatehouse)$/;
/** Beginnings of messages that come from the schema library. */
const OF_SCHEMAS = /^(?:Ungültig|Zu klein|Zu groß)/;

/** An address or a name inside a message. */
const ADDRESS = /https?:\/\/\w[^\s"]*|[\w.]+@[\w.]+|\u2068[^\u2069]*\u2069|code-only/gu;
/** A value of the API beside a text, such as an event type or a scope, or a time in a chart. */
const BESIDE =
  /[\p{L}0-9 ]+: [a-z]+(?::[a-z_]+)*$|\([a-z0-9_]+\)|\b[a-zA-Z0-9]+(?:[_.-][a-zA-Z0-9]+)+\b|\p{L}+\.?,? \d\d:\d\d(?: \p{L}+)? UTC/gu;

const unescaped = (text: string) =>
  text.replaceAll(/&(?:#(\d+)|#x([0-9a-f]+)|(amp|lt|gt|quot));/gi, (_, decimal, hex, name) =>
    name === undefined
      ? String.fromCodePoint(decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal))
      : { amp: '&', lt: '<', gt: '>', quot: '"' }[name as 'amp' | 'lt' | 'gt' | 'quot'],
  );

/** Returns the texts of a page that must come from messages. */
function textsIn(html: string): string[] {
  const title = /<title>([^<]*)/.exec(html)?.[1] ?? '';
  const plain = html.replaceAll(APART, '<i>').replaceAll(OWN_DIRECTION, '<i>');
  const said = [...plain.matchAll(/ (?:title|aria-label|placeholder|alt)="([^"]*)"/g)];
  return [title, ...plain.split(/<[^>]*>/), ...said.map(([, text = '']) => text)]
    .map((text) => unescaped(text).replace(TITLE, '').trim())
    .filter((text) => WORD.test(text) && !NAMES.has(text) && !OF_THE_API.test(text));
}

/** Returns a function that removes everything from a text that is in a message of a language. */
function foreignTo(tag: string): (text: string) => string {
  // The console of a language may lack messages, which are then in English.
  const messages = Object.values({ ...messagesOf(FALLBACK), ...messagesOf(tag) })
    .flatMap((message) => parsed(message).forms.map(({ text }) => text))
    // Only messages with words around their placeholders: others would match anything.
    .filter((text) => WORD.test(text.replaceAll(/\{\w*\}/g, '')))
    .sort((a, b) => b.length - a.length);
  const whole = new Set(messages.filter((text) => !text.includes('{')));
  const patterns = messages.map((text) => {
    const parts = text.split(/\{\w*\}/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return new RegExp(`(?<!\\p{L})${parts.join('.{0,200}?')}(?!\\p{L})`, 'gsu');
  });
  return (text) => (whole.has(text) ? '' : patterns.reduce((rest, one) => rest.replaceAll(one, ''), text));
}

/** Forms that would remove what other forms are tested with. */
const ENDS = /logout|delete|remove|rotate|revoke|end$|ended|password|sessions|administrators/;

/** Returns the forms of a page that post, each with its address and its empty fields. */
function formsOf(html: string, path: string): [action: string, fields: [string, string][]][] {
  return [...html.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs)].flatMap(([, attributes = '', within = '']) => {
    if (!/method="post"/.test(attributes)) return [];
    const action = unescaped(/action="([^"]*)"/.exec(attributes)?.[1] ?? '') || path;
    const fields = [...within.matchAll(/<(?:input|textarea|select)\b[^>]*>/g)].flatMap(
      ([tag]): [string, string][] => {
        const name = / name="([^"]*)"/.exec(tag)?.[1];
        const value = / type="hidden"/.test(tag) ? (/ value="([^"]*)"/.exec(tag)?.[1] ?? '') : '';
        return name === undefined || /type="(?:checkbox|radio)"/.test(tag)
          ? []
          : [[unescaped(name), unescaped(value)]];
      },
    );
    return [[action, fields]];
  });
}

describe('the texts of the console’s pages', () => {
  let server: TestServer;
  before(async () => {
    const { rateLimits } = UNLIMITED.attackProtection;
    server = await startConsole({ tenant: { ...tenant, attackProtection: { rateLimits } } });
  });
  after(() => server.stop());

  it('are in the reader’s language, on every page that is reachable by links', async () => {
    const { agent } = await openConsole(server);
    const met = { de: new Map<string, string>(), ar: new Map<string, string>() };
    const tags = Object.keys(met) as (keyof typeof met)[];
    const open = async (path: string, language: string) => {
      const headers = { 'accept-language': language };
      const first = await agent.get(path, headers);
      return first.location === '' ? first : agent.get(first.location, headers);
    };
    const found = await findPages(async (path) => {
      let html: string | undefined;
      for (const tag of tags) {
        const { status, text } = await open(path, tag);
        if (status !== 200) return undefined;
        for (const one of textsIn(text)) if (!met[tag].has(one)) met[tag].set(one, path);
        html = text;
      }
      return html;
    });
    expect(found.length).to.be.greaterThan(150);
    // Empty forms are posted in one language: what one shows is from a message, all show so.
    const answers = new Set<string>();
    for (const { path } of found) {
      for (const [action, fields] of formsOf((await open(path, 'de')).text, path)) {
        if (answers.has(action) || ENDS.test(action)) continue;
        answers.add(action);
        const headers = { 'accept-language': 'de' };
        const answer = await agent.request(action, { form: fields, headers });
        const { text } = answer.location === '' ? answer : await open(answer.location, 'de');
        for (const one of textsIn(text)) if (!met.de.has(one)) met.de.set(one, `POST ${action}`);
      }
    }
    expect(answers.size).to.be.greaterThan(80);
    for (const tag of tags) {
      const foreign = foreignTo(tag);
      expect(foreign('Skip to the content')).to.match(WORD);
      const forgotten = [...met[tag]].flatMap(([text, path]) => {
        const rest = foreign(text.replaceAll(ADDRESS, '')).replaceAll(BESIDE, '');
        return WORD.test(rest) && !OF_SCHEMAS.test(text) ? [`${path}: ${text} | ${rest}`] : [];
      });
      expect(forgotten, tag).to.deep.equal([]);
    }
  });
});
