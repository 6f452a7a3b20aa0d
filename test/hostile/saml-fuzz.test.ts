// SAML messages that are altered at random: each is refused or harmless, and of a signed one nothing unsigned is
// believed.
import { deflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import {
  authnRequest,
  idOf,
  logoutRequest,
  logoutResponse,
  postForm,
  redirectQuery,
  sign,
} from '../saml/messages.ts';
import {
  ACS,
  type KeyAndCertificate,
  makeCertificate,
  posted,
  SLO,
  SP_ISSUER,
  samlClient,
  serviceProvider,
  signOn,
  startSamlServer,
} from '../saml/support.ts';
import { createAgent } from '../support/agent.ts';
import { authorize, follow, responseOf, webRequest } from '../support/flows.ts';
import { seeded } from '../support/seeded.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

const EVIL = 'https://sp.example.test/evil';
const CASES = 100;

type Chance = () => number;
const below = (random: Chance, most: number) => Math.floor(random() * most);
const oneOf = <T>(random: Chance, all: readonly T[]): T => all[below(random, all.length)]!;

/** Replacements for parts of a message. */
const WORDS = [
  '',
  ' ',
  '"',
  "'",
  '<',
  '>',
  '&',
  '&amp;',
  '&#0;',
  '&#xD800;',
  '&#x10FFFF;',
  '&x;',
  '\u0000',
  '\ufeff',
  '\ufffe',
  'ä',
  '\u{1f600}',
  '-1',
  '1e999',
  'NaN',
  'true',
  '__proto__',
  'constructor',
  '../..',
  '%00',
  EVIL,
  'urn:evil',
  'urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress',
  '2026-02-30T25:61:61Z',
  '9999-12-31T23:59:59Z',
  '<!--',
  '-->',
  '<![CDATA[',
  ']]>',
  '<!DOCTYPE a>',
  '<?xml version="1.0"?>',
  '<a/>',
  '</samlp:AuthnRequest>',
  '<saml:Issuer>urn:evil</saml:Issuer>',
  ' xmlns="urn:evil"',
  ' xmlns:saml="urn:evil"',
  ` AssertionConsumerServiceURL="${EVIL}"`,
  'a'.repeat(3_000),
];

/** Alters a text in one of many ways. */
function bend(random: Chance, text: string): string {
  const at = below(random, text.length + 1);
  const length = below(random, 40);
  const values = [...text.matchAll(/"([^"]*)"/g)];
  const elements = [...text.matchAll(/<[^>]*>/g)];
  const ways: (() => string)[] = [
    () => text.slice(0, at) + oneOf(random, WORDS) + text.slice(at),
    () => text.slice(0, at) + text.slice(at + length),
    () => text.slice(0, at) + text.slice(at, at + length).repeat(2) + text.slice(at + length),
    () => text.slice(0, at) + String.fromCharCode(below(random, 0x10000)) + text.slice(at + 1),
    () => text.slice(0, at),
    () => swap(text, oneOf(random, values), `"${oneOf(random, WORDS)}"`),
    () => swap(text, oneOf(random, elements), oneOf(random, WORDS)),
    () => swap(text, oneOf(random, elements), oneOf(random, elements)?.[0] ?? ''),
    () => text.replaceAll(ACS, EVIL),
    () => text.replaceAll(SP_ISSUER, 'urn:evil'),
    () => text.replace('</saml:Issuer>', `</saml:Issuer>${text}`),
    () => `<a>${text}</a>`,
  ];
  return oneOf(random, ways)();
}

function swap(text: string, found: RegExpExecArray | undefined, by: string): string {
  if (found === undefined) return text;
  return text.slice(0, found.index) + by + text.slice(found.index + found[0].length);
}

function bendOften(random: Chance, text: string): string {
  let bent = text;
  for (let left = 1 + below(random, 3); left > 0; left--) bent = bend(random, bent);
  return bent;
}

describe('altered SAML messages', () => {
  let server: TestServer;
  let key: KeyAndCertificate;

  before(async () => {
    key = await makeCertificate();
    const logout = { logout: { callback: SLO } };
    const callbacks = { callbacks: [ACS, EVIL] };
    server = await startSamlServer(
      [
        samlClient('open', { ...logout, audience: undefined }, callbacks),
        samlClient('strict', { ...logout, signingCert: key.certificate }, callbacks),
      ],
      UNLIMITED,
    );
  });
  after(() => server.stop());

  const CLIENTS = ['open', 'strict'] as const;
  const address = (client: string, path = '') => `${server.url}/samlp/${client}${path}`;
  const made = (
    random: Chance,
    client: string,
  ): { kind: 'SAMLRequest' | 'SAMLResponse'; path: string; xml: string } => {
    const path = random() < 0.5 ? '' : '/logout';
    const attributes = { Destination: address(client, path) };
    if (path === '') return { kind: 'SAMLRequest', path, xml: authnRequest({ attributes }) };
    return random() < 0.5
      ? { kind: 'SAMLRequest', path, xml: logoutRequest({ attributes, nameId: 'ada', sessionIndex: '_x' }) }
      : { kind: 'SAMLResponse', path, xml: logoutResponse({ attributes, inResponseTo: '_x' }) };
  };
  async function isHarmless(answer: ReturnType<ReturnType<typeof createAgent>['get']>, what: string) {
    const { status } = await answer;
    expect(status, what).to.be.below(500);
  }
  afterEach(() => {
    expect(server.logged()).not.to.include('unexpected error');
  });
  const AS_SIGNED = { acsUrl: ACS, issuer: SP_ISSUER, forceAuthn: false, isPassive: false };
  /** Returns the new waiting requests of an application that signs. */
  async function believed() {
    const challenges = server.store.collection('challenges');
    const { records } = await challenges.list({ limit: 1000 });
    await Promise.all(records.map(({ id }) => challenges.delete(id)));
    return (
      records
        .filter(({ purpose, data }) => purpose === 'internal_login' && data.clientId === 'strict')
        .map(({ data }) => (data.data as { request: Record<string, unknown> }).request)
        // A query that lost its message begins an unsolicited login.
        .filter(({ id }) => id !== undefined)
    );
  }

  for (const seed of [1, 2]) {
    it(`as XML, by post, are refused or harmless (seed ${seed})`, async () => {
      const random = seeded(seed);
      for (let count = 0; count < CASES; count++) {
        const client = oneOf(random, CLIENTS);
        const { kind, path, xml } = made(random, client);
        const whole = client === 'strict' ? sign(xml, key.privateKey) : xml;
        const bent = bendOften(random, whole);
        const packed = random() < 0.3 ? deflateRawSync(bent) : Buffer.from(bent);
        const form = { [kind]: packed.toString('base64'), RelayState: oneOf(random, WORDS) };
        const sent = createAgent(server).request(`/samlp/${client}${path}`, { form });
        await isHarmless(sent, `seed ${seed}, case ${count}: ${bent}`);
      }
      for (const request of await believed()) expect(request).to.include(AS_SIGNED);
    });

    it(`as queries are refused or harmless (seed ${seed})`, async () => {
      const random = seeded(100 + seed);
      for (let count = 0; count < CASES; count++) {
        const client = oneOf(random, CLIENTS);
        const { kind, path, xml } = made(random, client);
        const isSigned = client === 'strict' && random() < 0.5;
        const query = redirectQuery(isSigned || random() < 0.3 ? xml : bendOften(random, xml), {
          parameter: kind,
          relayState: 'mine',
          ...(isSigned ? { privateKey: key.privateKey } : {}),
        });
        // In the characters that a request line may have.
        const bent = (random() < 0.7 ? bendOften(random, query) : query).replaceAll(/[^!-~]|#/g, encodeWord);
        const sent = createAgent(server).get(`/samlp/${client}${path}?${bent}`);
        await isHarmless(sent, `seed ${seed}, case ${count}: ${bent}`);
      }
      const requests = await believed();
      // At least the unaltered ones.
      expect(requests).not.to.deep.equal([]);
      for (const request of requests) expect(request).to.include({ ...AS_SIGNED, relayState: 'mine' });
    });
  }

  it('as bytes are refused', async () => {
    const random = seeded(7);
    for (let count = 0; count < CASES; count++) {
      const bytes = Buffer.from(Array.from({ length: below(random, 300) }, () => below(random, 256)));
      const packed = random() < 0.5 ? deflateRawSync(bytes) : bytes;
      const path = oneOf(random, ['', '/logout']);
      const { status } = await createAgent(server).request(`/samlp/open${path}`, {
        form: { SAMLRequest: packed.toString('base64') },
      });
      expect(status, packed.toString('hex')).to.equal(400);
    }
  });

  it('of a logged-in user log out nobody whose name was not signed', async () => {
    const random = seeded(11);
    const agent = createAgent(server);
    const sp = await serviceProvider(server, 'strict', { privateKey: key.privateKey });
    const { profile } = await signOn(agent, server, sp);
    for (let count = 0; count < 50; count++) {
      const attributes = { Destination: address('strict', '/logout') };
      const signed = sign(logoutRequest({ attributes, nameId: 'nobody' }), key.privateKey);
      const wanted = logoutRequest({
        attributes: { ...attributes, ID: idOf(signed) },
        nameId: profile.nameID,
      });
      const bent = bendOften(random, signed)
        .replace('nobody', random() < 0.5 ? profile.nameID : 'nobody')
        .replace('</samlp:LogoutRequest>', random() < 0.5 ? `${wanted}</samlp:LogoutRequest>` : '$&');
      await isHarmless(agent.request('/samlp/strict/logout', { form: postForm(bent) }), bent);
    }
    const asked = await authorize(agent, webRequest({ prompt: 'none' }));
    expect(responseOf(await follow(agent, asked, server.url)).code).to.be.a('string');
    // The intended logout does.
    const attributes = { Destination: address('strict', '/logout') };
    const meant = sign(logoutRequest({ attributes, nameId: profile.nameID }), key.privateKey);
    const end = await agent.request('/samlp/strict/logout', { form: postForm(meant) });
    expect(posted(await follow(agent, end, server.url)).xml).to.include(':status:Success"');
  });
});

const encodeWord = (character: string) =>
  [...Buffer.from(character)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
