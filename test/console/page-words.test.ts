// The words of every page of the console in a language with letters of its own: what stands there in Latin ones is a name, or
// code and marked as such, or was forgotten.
import { expect } from 'chai';
import { kindsByGroup } from '../../src/console/connections/kinds.ts';
import { openConsole, startConsole } from '../support/console.ts';
import { findPages } from '../support/console-pages.ts';
import { tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

/** What is code or somebody's own text, with what is in it; options may be values of the API. */
const APART = /<(head|script|style|svg|code|pre|bdi|textarea|option)\b[^>]*>.*?<\/\1>/gs;
/** An element without others in it that says in which direction its text is written. */
const OWN_DIRECTION = /<(\w+)\b[^>]* dir="(?:ltr|auto)"[^>]*>[^<]*<\/\1>/g;

const NAMES: ReadonlySet<string> = new Set([
  ...kindsByGroup().flatMap(({ kinds }) => kinds.map(({ label }) => label ?? '')),
  ...['OpenID Connect', 'SAML 2.0', 'ADFS', 'PingFederate', 'SCIM', 'JSON', 'https://', 'English', 'Deutsch'],
  // Of the example applications and APIs.
  ...tenant.clients.map(({ name }) => name),
  ...tenant.resourceServers.map(({ name }) => name),
  ...['Auth0 Management API', 'Auth0 My Account API'],
]);
/** As the API names its members and values. */
const OF_THE_API = /^[a-z0-9_.-]+$/;

/** The words of a page that are in Latin letters and no names, each text by itself. */
function latinIn(html: string): string[] {
  const plain = html.replaceAll(APART, '<i>').replaceAll(OWN_DIRECTION, '<i>');
  const said = [...plain.matchAll(/ (?:title|aria-label|placeholder|alt)="([^"]*)"/g)];
  return [...plain.split(/<[^>]*>/), ...said.map(([, text = '']) => text)]
    .map((text) => text.trim())
    .filter((text) => /[a-z]{3}/i.test(text) && !/\p{Script=Arabic}/u.test(text))
    .filter((text) => !NAMES.has(text) && !OF_THE_API.test(text));
}

describe('the words of the console’s pages', () => {
  let server: TestServer;
  before(async () => {
    const { rateLimits } = UNLIMITED.attackProtection;
    server = await startConsole({ tenant: { ...tenant, attackProtection: { rateLimits } } });
  });
  after(() => server.stop());

  it('are in the reader’s language, on every page that a link leads to', async () => {
    const { agent } = await openConsole(server);
    const open = async (path: string, language: string) => {
      const headers = { 'accept-language': language };
      const first = await agent.get(path, headers);
      return first.location === '' ? first : agent.get(first.location, headers);
    };
    expect(latinIn((await open('/console', 'en')).text)).to.include.members([
      'Overview',
      'Skip to the content',
    ]);
    const forgotten: string[] = [];
    const found = await findPages(async (path) => {
      const { status, text } = await open(path, 'ar');
      if (status !== 200) return undefined;
      forgotten.push(...latinIn(text).map((one) => `${path}: ${one}`));
      return text;
    });
    expect(found.length).to.be.greaterThan(150);
    expect(forgotten).to.deep.equal([]);
  });
});
