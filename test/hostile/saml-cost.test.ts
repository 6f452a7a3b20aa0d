// What a stranger's SAML message costs the thread that answers everybody: never more than a few milliseconds, whatever
// is in it. Processor time of the thread is counted, which other work on the machine does not change much.
import { deflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { SIGN_IN } from '../connections/samlp/provider.ts';
import {
  type KeyAndCertificate,
  makeCertificate,
  SLO,
  samlClient,
  startSamlServer,
} from '../saml/support.ts';
import { createAgent } from '../support/agent.ts';
import { costlyXml, PART_NAMES, someParts } from '../support/costly-xml.ts';
import { seeded } from '../support/seeded.ts';
import type { TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

/** Milliseconds, with what reading the request and sending it from here takes: on a slow machine up to 25. */
const MAX_COST = 40;
/** Most need one; the first of a kind are slow until their code is compiled. */
const MAX_TRIES = 12;
const CASES = 25 * Number(process.env.FUZZ_DEPTH ?? 1);
const SMALL_BYTES = 65_536;
const LARGE_BYTES = 262_144;

/** An endpoint that strangers may send messages to. */
interface Endpoint {
  path: string;
  field: 'SAMLRequest' | 'SAMLResponse';
  root: string;
  bytes: number;
  elements: number;
}

const ENDPOINTS: readonly Endpoint[] = [
  { path: '/logout', field: 'SAMLRequest', root: 'LogoutRequest', bytes: SMALL_BYTES, elements: 450 },
  { path: '/logout', field: 'SAMLResponse', root: 'LogoutResponse', bytes: SMALL_BYTES, elements: 450 },
  { path: '/samlp/strict', field: 'SAMLRequest', root: 'AuthnRequest', bytes: SMALL_BYTES, elements: 450 },
  { path: '/samlp/open', field: 'SAMLRequest', root: 'AuthnRequest', bytes: SMALL_BYTES, elements: 450 },
  {
    path: '/samlp/strict/logout',
    field: 'SAMLRequest',
    root: 'LogoutRequest',
    bytes: SMALL_BYTES,
    elements: 450,
  },
  {
    path: '/samlp/open/logout',
    field: 'SAMLResponse',
    root: 'LogoutResponse',
    bytes: SMALL_BYTES,
    elements: 450,
  },
  {
    path: '/login/callback?connection=acme',
    field: 'SAMLResponse',
    root: 'Response',
    bytes: LARGE_BYTES,
    elements: 4_900,
  },
];

describe('the cost of a SAML message from anybody', () => {
  let server: TestServer;
  let key: KeyAndCertificate;

  before(async () => {
    key = await makeCertificate();
    const logout = { logout: { callback: SLO } };
    const acme = {
      name: 'acme',
      strategy: 'samlp',
      enabled_clients: ['web'],
      options: {
        signInEndpoint: SIGN_IN,
        signOutEndpoint: SIGN_IN,
        signingCert: key.certificate,
        idpinitiated: { enabled: true, client_id: 'web', client_protocol: 'oauth2' },
      },
    };
    server = await startSamlServer(
      [
        samlClient('open', { ...logout, audience: undefined }),
        samlClient('strict', { ...logout, signingCert: key.certificate }),
      ],
      { ...UNLIMITED, connections: [acme] },
    );
  });
  after(() => server.stop());

  /** Returns the processor time of this thread for a request, the least of several, milliseconds. */
  async function cost(send: () => Promise<{ status: number }>): Promise<number> {
    let least = Number.POSITIVE_INFINITY;
    for (let left = MAX_TRIES; left > 0 && least >= MAX_COST; left--) {
      const before = process.threadCpuUsage();
      const { status } = await send();
      const { user, system } = process.threadCpuUsage(before);
      expect(status).to.be.within(200, 499);
      least = Math.min(least, (user + system) / 1000);
    }
    return least;
  }

  /** Sends a message by each binding. */
  async function expectCheap({ path, field }: Endpoint, xml: string, what: string): Promise<void> {
    const agent = createAgent(server);
    const bytes = Buffer.from(xml);
    const packed = deflateRawSync(bytes).toString('base64');
    const form = { [field]: bytes.toString('base64') };
    expect(await cost(() => agent.request(path, { form })), `${what}, posted`).to.be.below(MAX_COST);
    expect(
      await cost(() => agent.request(path, { form: { [field]: packed } })),
      `${what}, deflated`,
    ).to.be.below(MAX_COST);
    if (path.includes('?') || packed.length > 10_000) return;
    const query = new URLSearchParams({ [field]: packed });
    expect(await cost(() => agent.get(`${path}?${query}`)), `${what}, in the query`).to.be.below(MAX_COST);
  }

  const attributesOf = ({ path }: Endpoint) =>
    ` Version="2.0" IssueInstant="${new Date().toISOString()}" Destination="${server.url}${path}"`;

  for (const endpoint of ENDPOINTS) {
    const { path, root, bytes, elements } = endpoint;
    it(`is small at ${path} for a ${root} of any kind of parts`, async () => {
      const random = seeded(33);
      for (const name of PART_NAMES) {
        for (const most of [elements, Number.POSITIVE_INFINITY]) {
          const names = [name];
          const options = { root, attributes: attributesOf(endpoint), names, most, length: bytes };
          await expectCheap(endpoint, costlyXml(random, options), `${most} parts "${name}"`);
        }
      }
    }).timeout(120_000);

    it(`is small at ${path} for a ${root} of parts at random`, async () => {
      const random = seeded(root.length + path.length);
      for (let left = CASES; left > 0; left--) {
        const names = someParts(random);
        const most = Math.ceil(random() * elements);
        const options = { root, attributes: attributesOf(endpoint), names, most, length: bytes };
        await expectCheap(endpoint, costlyXml(random, options), `${most} parts ${names.join(', ')}`);
      }
    }).timeout(120_000 * Number(process.env.FUZZ_DEPTH ?? 1));
  }

  it('is small for what only begins like a message', async () => {
    const agent = createAgent(server);
    for (const text of [
      '\ufeff'.repeat(60),
      ' '.repeat(64),
      '\ufeff \ufeff '.repeat(12),
      `${'\ufeff'.repeat(20)}x`,
    ]) {
      const form = { SAMLRequest: Buffer.from(text).toString('base64') };
      expect(await cost(() => agent.request('/logout', { form })), JSON.stringify(text)).to.be.below(
        MAX_COST,
      );
    }
  });
});
