// Large SAML messages are read in a thread. Strangers who send many get their share of it, and others theirs.
import { expect } from 'chai';
import { assertion, CLAIMS, response, SIGN_IN, signed } from '../connections/samlp/provider.ts';
import { makeCertificate } from '../saml/support.ts';
import { tenant } from '../support/flows.ts';
import { startServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

const BASE_URL = 'https://login.example.test';
/** Addresses of one /48, each in a /64 of its own. */
const attacker = (i: number) => `2001:db8:66:${i.toString(16)}::1`;
const ATTACKERS = 48;

describe('large SAML messages of many addresses of one network', () => {
  it('leave the login of somebody else its turn, and are refused when too many wait', async () => {
    const key = await makeCertificate();
    const acme = {
      name: 'acme',
      strategy: 'samlp',
      enabled_clients: ['web'],
      options: {
        signInEndpoint: SIGN_IN,
        signingCert: key.certificate,
        idpinitiated: { enabled: true, client_id: 'web', client_protocol: 'oidc' },
      },
    };
    const server = await startServer({
      tenant: { ...tenant, ...UNLIMITED, connections: [acme] },
      env: { TLS: 'proxy', TRUSTED_PROXIES: '127.0.0.1', BASE_URL },
    });
    const post = async (ip: string, xml: string) => {
      const answer = await fetch(`http://127.0.0.1:${server.settings.port}/login/callback?connection=acme`, {
        method: 'POST',
        redirect: 'manual',
        headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': ip },
        body: new URLSearchParams({ SAMLResponse: Buffer.from(xml).toString('base64') }),
      });
      return { status: answer.status, text: await answer.text() };
    };
    const audience = 'urn:auth0:login:acme';
    const groups = Array.from({ length: 1_500 }, (_, at) => `group ${at}`);
    const attributes = { [`${CLAIMS}emailaddress`]: 'grace@upstream.test', groups };
    const login = () =>
      response(
        { url: BASE_URL },
        signed(assertion({ url: BASE_URL }, { attributes, audience }), 'Assertion', key.privateKey),
      );
    const large = response({ url: BASE_URL }, `<a>${'<b c="d"/>'.repeat(4_900)}</a>`);
    const logins = [login(), login(), login()];
    try {
      let isOver = false;
      /** How many messages of the attack were read. */
      let read = 0;
      const attack = Array.from({ length: ATTACKERS }, async (_, i) => {
        const statuses: number[] = [];
        while (!isOver) {
          const { status, text } = await post(attacker(i), large);
          statuses.push(status);
          if (status === 400) read++;
          if (status === 503) expect(text).to.contain('Too many large SAML messages');
        }
        return statuses;
      });
      for (const [at, xml] of logins.entries()) {
        const before = read;
        const { status, text } = await post(`198.51.${at}.7`, xml);
        expect(status, text.slice(0, 2_000)).to.equal(303);
        // It is read, and then verified: each time the others have a turn before it.
        expect(read - before, 'read before a login of somebody else').to.be.below(20);
      }
      isOver = true;
      const refused = (await Promise.all(attack)).flat();
      expect(refused).to.include.members([400, 503]);
      expect(refused.filter((status) => status !== 400 && status !== 503)).to.deep.equal([]);
    } finally {
      await server.stop();
    }
  }).timeout(120_000);
});
