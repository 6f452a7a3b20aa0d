// Logins that a SAML identity provider begins (IdP-initiated).
import { expect } from 'chai';
import { ACS, samlClient } from '../../saml/support.ts';
import { createAgent, readForm } from '../../support/agent.ts';
import { authorize, follow, tenant, WEB_CALLBACK, webRequest } from '../../support/flows.ts';
import { newId, type SamlWorld, SIGN_IN, samlWorld } from './provider.ts';

describe('an IdP-initiated SAML login', () => {
  let world: SamlWorld;
  before(async () => {
    world = await samlWorld(
      () => ({
        idpinitiated: {
          enabled: true,
          client_id: 'web',
          client_protocol: 'oidc',
          client_authorizequery: `redirect_uri=${encodeURIComponent(WEB_CALLBACK)}&scope=openid%20email&response_type=code`,
        },
      }),
      (key) => {
        const connection = (name: string, enabled_clients: string[], idpinitiated?: object) => ({
          name,
          strategy: 'samlp',
          enabled_clients,
          options: {
            signInEndpoint: SIGN_IN,
            signingCert: key.certificate,
            ...(idpinitiated && { idpinitiated }),
          },
        });
        return {
          clients: [...tenant.clients, samlClient('sp')],
          connections: [
            connection('closed', ['web']),
            connection('off', ['web'], { enabled: false, client_id: 'web' }),
            connection('elsewhere', ['spa'], { enabled: true, client_id: 'web' }),
            connection('onward', ['sp'], { enabled: true, client_id: 'sp', client_protocol: 'samlp' }),
          ],
        };
      },
    );
  });
  after(() => world.server.stop());

  const unsolicited = (over = {}) => world.answer({ requestId: '' }, { inResponseTo: undefined, ...over });
  const post = (xml: string, name = 'acme', agent = createAgent(world.server), relayState = '') =>
    world.post({ agent, relayState }, xml, `/login/callback?connection=${name}`);

  it('ends at the application, with an answer without state', async () => {
    const agent = createAgent(world.server);
    const redirect = await post(
      unsolicited({ nameId: 'hedy' }),
      'acme',
      agent,
      'https://deep.example.test/link',
    );
    expect([redirect.status, new URL(redirect.location).pathname]).to.deep.equal([303, '/authorize']);
    const last = await follow(agent, redirect, world.server.url);
    const at = new URL(last.location);
    expect(`${at.origin}${at.pathname}`).to.equal(WEB_CALLBACK);
    expect([...at.searchParams.keys()])
      .to.include('code')
      .and.not.to.include('state');
    const { code = '' } = Object.fromEntries(at.searchParams);
    const tokens = await agent.request('/oauth/token', {
      json: {
        grant_type: 'authorization_code',
        code,
        client_id: 'web',
        client_secret: 'web-secret',
        redirect_uri: WEB_CALLBACK,
      },
    });
    const { sub } = JSON.parse(Buffer.from(tokens.json().id_token.split('.')[1], 'base64url').toString());
    expect(sub).to.equal('samlp|acme|hedy');
  });

  it('replaces the session of another user', async () => {
    const agent = createAgent(world.server);
    for (const nameId of ['one', 'two']) {
      await follow(agent, await post(unsolicited({ nameId }), 'acme', agent), world.server.url);
    }
    const { userId } = (await sessionOf(agent)) ?? {};
    expect(userId).to.equal('samlp|acme|two');
  });
  const sessionOf = async (agent: ReturnType<typeof createAgent>) => {
    const { location } = await authorize(
      agent,
      webRequest({ prompt: 'none', response_type: 'id_token', nonce: 'n' }),
    );
    const token = new URLSearchParams(new URL(location).hash.slice(1)).get('id_token') ?? '';
    return {
      userId: JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).sub as string,
    };
  };

  it('continues to a SAML application', async () => {
    const agent = createAgent(world.server);
    const redirect = await post(unsolicited({ audience: 'urn:auth0:localhost:onward' }), 'onward', agent);
    expect(new URL(redirect.location).pathname).to.equal('/samlp/sp');
    const page = await follow(agent, redirect, world.server.url);
    expect(readForm(page, 'SAMLResponse').action).to.equal(ACS);
  });

  it('cannot be continued in another browser', async () => {
    const redirect = await post(unsolicited());
    const other = createAgent(world.server);
    const last = await follow(other, await other.get(redirect.location), world.server.url);
    expect(last.location).not.to.include('code=');
  });

  it('is rejected if the connection does not allow it, or is not enabled for the application', async () => {
    for (const name of ['closed', 'off', 'elsewhere', 'users', 'none']) {
      const xml = unsolicited({ audience: `urn:auth0:localhost:${name}` });
      expect((await post(xml, name)).status, name).to.equal(400);
    }
    expect(
      (await world.post({ agent: createAgent(world.server), relayState: '' }, unsolicited())).status,
    ).to.equal(400);
  });

  it('is rejected if it answers a request, is unsigned, for another audience, too old, or replayed', async () => {
    const refused: [string, RegExp][] = [
      [world.answer({ requestId: newId() }), /another request, or none/],
      [unsolicited({ confirmed: newId() }), /another request, or none/],
      [unsolicited().replace(/<ds:Signature[\s\S]*<\/ds:Signature>/, ''), /must be signed/],
      [unsolicited({ audience: 'urn:auth0:localhost:closed' }), /audience/],
      [unsolicited({ issuedAt: new Date(Date.now() - 3_600_000).toISOString() }), /IssueInstant/],
    ];
    for (const [xml, words] of refused) {
      const { status, text } = await post(xml);
      expect([status >= 400, words.test(text)]).to.deep.equal([true, true]);
    }
    const twice = unsolicited();
    const answers = await Promise.all(Array.from({ length: 50 }, () => post(twice)));
    expect(answers.filter(({ status }) => status === 303)).to.have.length(1);
  });

  it('is not accepted as the answer to a login that waits', async () => {
    const away = await world.away();
    const answer = await world.post(away, unsolicited(), '/login/callback?connection=acme');
    expect(await world.finish(away.agent, answer)).to.include({ error: 'invalid_request' });
  });
});
