// The same attacks on the answer of a provider, for every strategy whose users log in elsewhere.

import { inflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { exportPKCS8, generateKeyPair } from 'jose';
import { strategies } from '../../src/features/connections/strategies.ts';
import { SOCIAL_STRATEGIES } from '../../src/records/connections/social.ts';
import { assertion, idOf, response, signed } from '../connections/samlp/provider.ts';
import { type KeyAndCertificate, makeCertificate } from '../saml/support.ts';
import { type Agent, createAgent } from '../support/agent.ts';
import { authorize, follow, responseOf, tenant, webRequest } from '../support/flows.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../support/oauth2-provider.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../support/openid-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { UNLIMITED } from '../support/unlimited.ts';

/** What a browser brings back: a query, or the fields of a form. */
interface Brought {
  query?: Record<string, string>;
  form?: Record<string, string>;
}

/** A login that was redirected to its provider. */
interface Gone {
  agent: Agent;
  /** The answer of the provider. */
  brought: Brought;
  /** The same answer, from the provider of the other connection, for the state of this login. */
  ofOther: Brought;
  /** The same answer, in the name of another issuer. */
  ofIssuer: Brought;
}

/** A strategy, with its connections `<name>-a` and `<name>-b` at two providers. */
interface Row {
  name: string;
  strategy: string;
  options(side: 0 | 1): object;
  go(at: URL, side: 0 | 1): Promise<Omit<Gone, 'agent'>>;
}

const OPENID: Record<string, object> = {
  oidc: { type: 'back_channel' },
  okta: { domain: 'acme.okta.example.test' },
  waad: { tenantId: 'acme' },
  adfs: { adfs_server: 'sts.example.test' },
  'google-oauth2': {},
  'google-apps': { domain: 'acme.example.test', map_user_id_to_id: true },
  apple: { client_secret: '', team_id: 'TEAM', kid: 'KEY' },
};
/** Social strategies share their code; these represent them. */
const SOCIAL = ['github', 'gitlab'];
const EVIL = 'https://evil.example.test';

describe('an attacked answer of a provider', () => {
  let oauth: [OAuth2Provider, OAuth2Provider];
  let openid: [OpenIdProvider, OpenIdProvider];
  let saml: [KeyAndCertificate, KeyAndCertificate];
  let teamKey = '';
  let server: TestServer;

  /** Follows the redirects to a provider that answers by a redirect. */
  const redirected = async (at: URL): Promise<Record<string, string>> => {
    const gone = await fetch(at, { redirect: 'manual' });
    return Object.fromEntries(new URL(gone.headers.get('location') ?? '').searchParams);
  };
  const byCode: Row['go'] = async (at, side) => {
    const query = await redirected(at);
    const toOther = new URL(at);
    const other = side === 0 ? 1 : 0;
    const isOpenId = at.origin === openid[side].url;
    toOther.port = new URL(isOpenId ? openid[other].url : oauth[other].url).port;
    const { code = '' } = await redirected(toOther);
    return {
      brought: { query },
      ofOther: { query: { ...query, code } },
      ofIssuer: { query: { ...query, iss: EVIL } },
    };
  };
  const front: Row['go'] = async (at, side) => {
    const { state = '', nonce = '' } = Object.fromEntries(at.searchParams);
    const form = async (by: OpenIdProvider, claims: object) => ({
      form: { state, id_token: await by.sign({ nonce, ...claims }) },
    });
    return {
      brought: await form(openid[side], {}),
      ofOther: await form(openid[side === 0 ? 1 : 0], {}),
      ofIssuer: await form(openid[side], { iss: EVIL }),
    };
  };
  const entityOf = (side: number) => `https://idp-${side}.example.test/metadata`;
  const samlOf =
    (name: string): Row['go'] =>
    async (at, side) => {
      const request = inflateRawSync(
        Buffer.from(at.searchParams.get('SAMLRequest') ?? '', 'base64'),
      ).toString();
      const inResponseTo = idOf(request);
      const answer = (by: number, issuer = entityOf(by)): Brought => {
        const audience = `urn:auth0:localhost:${name}-${'ab'[side]}`;
        const said = { inResponseTo, issuer, audience };
        const xml = response(
          server,
          signed(assertion(server, said), 'Assertion', saml[by === 0 ? 0 : 1].privateKey),
          said,
        );
        const SAMLResponse = Buffer.from(xml).toString('base64');
        return { form: { SAMLResponse, RelayState: at.searchParams.get('RelayState') ?? '' } };
      };
      return { brought: answer(side), ofOther: answer(1 - side), ofIssuer: answer(side, EVIL) };
    };

  const openIdOptions = (more: object) => (side: 0 | 1) => ({
    client_id: 'gatehouse',
    client_secret: 'upstream-secret',
    discovery_url: `${openid[side].url}/.well-known/openid-configuration`,
    ...more,
  });
  const rows: Row[] = [
    { name: 'oauth2', strategy: 'oauth2', options: (side) => optionsFor(oauth[side]), go: byCode },
    ...SOCIAL.map((strategy) => ({
      name: strategy,
      strategy,
      options: (side: 0 | 1) => ({ ...optionsFor(oauth[side]), userInfoURL: `${oauth[side].url}/userinfo` }),
      go: byCode,
    })),
    ...Object.entries(OPENID).map(([strategy, more]) => ({
      name: strategy,
      strategy,
      options: (side: 0 | 1) =>
        openIdOptions({ ...more, ...(strategy === 'apple' && { app_secret: teamKey }) })(side),
      go: byCode,
    })),
    { name: 'oidc-front', strategy: 'oidc', options: openIdOptions({ type: 'front_channel' }), go: front },
    ...['samlp', 'pingfederate'].map((strategy) => ({
      name: strategy,
      strategy,
      options: (side: 0 | 1) => ({
        signInEndpoint: `https://idp-${side}.example.test/sso`,
        signingCert: saml[side].certificate,
        issuer: entityOf(side),
      }),
      go: samlOf(strategy),
    })),
  ];

  before(async () => {
    oauth = await Promise.all([startProvider(), startProvider()]);
    openid = await Promise.all([
      startOpenIdProvider(await signingKey('k1')),
      startOpenIdProvider(await signingKey('k1')),
    ]);
    saml = [await makeCertificate(), await makeCertificate()];
    const { privateKey } = await generateKeyPair('ES256', { extractable: true });
    teamKey = await exportPKCS8(privateKey);
    for (const one of openid) one.claims = { hd: 'acme.example.test' };
    for (const one of oauth) one.user = { ...one.user, sub: 'grace' };
    server = await startServer({
      tenant: {
        ...tenant,
        ...UNLIMITED,
        connections: rows.flatMap(({ name, strategy, options }) =>
          ([0, 1] as const).map((side) => ({
            name: `${name}-${'ab'[side]}`,
            strategy,
            enabled_clients: ['web'],
            options: options(side),
          })),
        ),
      },
    });
  });
  after(async () => {
    await server?.stop();
    await Promise.all([...(oauth ?? []), ...(openid ?? [])].map((one) => one.stop()));
  });

  const begin = async ({ name, go }: Row, side: 0 | 1 = 0, agent = createAgent(server)): Promise<Gone> => {
    const { location } = await authorize(agent, webRequest({ connection: `${name}-${'ab'[side]}` }));
    const at = new URL(location);
    const gone = await go(at, side);
    const { query, form } = gone.brought;
    const isPosted = at.searchParams.get('response_mode') === 'form_post' && form === undefined;
    return { agent, ...gone, ...(isPosted && query && { brought: { query: {}, form: query } }) };
  };
  const bring = (agent: Agent, { query, form }: Brought, more: Record<string, string> = {}) => {
    const search = new URLSearchParams({ ...query, ...more }).toString();
    const path = `/login/callback${search === '' ? '' : `?${search}`}`;
    return form === undefined ? agent.get(path) : agent.request(path, { form });
  };
  const told = async (agent: Agent, brought: Brought, more: Record<string, string> = {}) =>
    responseOf(await follow(agent, await bring(agent, brought, more), server.url));
  /** The clients that the providers issued tokens to. */
  const exchanges = () =>
    [...oauth, ...openid].map(({ seen }) => seen.filter(({ path }) => path === '/token').length);

  it('is tested for every strategy', () => {
    const social: readonly string[] = SOCIAL_STRATEGIES;
    const names = strategies.flatMap(({ page, name }) =>
      page === 'redirect' && !social.includes(name) ? [name] : [],
    );
    expect(rows.map(({ strategy }) => strategy)).to.include.members(names);
  });

  for (const row of rows) {
    describe(row.name, () => {
      it('is accepted as the provider sends it', async () => {
        const { agent, brought } = await begin(row);
        expect(await told(agent, brought)).to.have.property('code');
      });

      it('is refused where no login waits for it, without a request to the provider', async () => {
        const { brought } = await begin(row);
        const asked = exchanges();
        const agent = createAgent(server);
        const stateless = {
          query: { ...brought.query, state: 'a'.repeat(43) },
          ...(brought.form && {
            query: {},
            form: { ...brought.form, state: '', RelayState: 'b'.repeat(43) },
          }),
        };
        for (const one of [brought, stateless]) expect((await bring(agent, one)).status).to.equal(400);
        expect(exchanges()).to.deep.equal(asked);
      });

      it('is refused in another browser, and stays valid in its own', async () => {
        const { agent, brought } = await begin(row);
        const victim = await begin(row);
        expect((await bring(victim.agent, brought)).status).to.equal(400);
        expect(await told(agent, brought)).to.have.property('code');
        expect(await told(victim.agent, victim.brought)).to.have.property('code');
      });

      it('is accepted once, of fifty concurrent ones and later ones', async () => {
        const { agent, brought } = await begin(row);
        const asked = exchanges().reduce((sum, one) => sum + one);
        const answers = await Promise.all(Array.from({ length: 50 }, () => bring(agent, brought)));
        expect(answers.filter(({ status }) => status === 303)).to.have.length(1);
        expect(answers.filter(({ status }) => status === 400)).to.have.length(49);
        expect((await bring(agent, brought)).status).to.equal(400);
        expect(exchanges().reduce((sum, one) => sum + one) - asked).to.be.at.most(1);
      });

      it('is refused in the name of another issuer', async () => {
        const { agent, ofIssuer } = await begin(row);
        const asked = exchanges();
        expect((await told(agent, ofIssuer)).error).to.be.oneOf(['access_denied', 'invalid_request']);
        expect(exchanges()).to.deep.equal(asked);
      });

      it('is refused when it comes from the provider of another connection (mix-up)', async () => {
        const { agent, ofOther } = await begin(row);
        const sides = row.go === byCode ? exchanges() : [];
        const answer = await told(agent, ofOther);
        expect(answer.error).to.be.a('string');
        expect(answer).not.to.have.property('code');
        // The code goes only to the provider of the request.
        if (row.go === byCode) for (const other of [1, 3]) expect(exchanges()[other]).to.equal(sides[other]);
      });

      it('is refused at the address of another connection, and for the login at another one', async () => {
        const agent = createAgent(server);
        const [one, two] = [await begin(row, 0, agent), await begin(row, 1, agent)];
        if (one.brought.form !== undefined) {
          const elsewhere = await begin(row, 0, agent);
          const answer = await told(agent, elsewhere.brought, { connection: `${row.name}-b` });
          expect(answer).to.include({ error: 'access_denied' });
        }
        // With the state of the other login, which waits in the same browser.
        const swapped = {
          query: { ...one.brought.query, ...(two.brought.query && { state: two.brought.query.state ?? '' }) },
          ...(one.brought.form && {
            query: {},
            form: {
              ...one.brought.form,
              ...(two.brought.form?.state !== undefined && { state: two.brought.form.state }),
              ...(two.brought.form?.RelayState !== undefined && { RelayState: two.brought.form.RelayState }),
            },
          }),
        };
        const answer = await told(agent, swapped);
        expect(answer.error).to.be.a('string');
        expect(answer).not.to.have.property('code');
      });
    });
  }
});
