// Logins at well-known providers: each preset against a test provider that responds as the real one does.
import { createHmac } from 'node:crypto';
import { expect } from 'chai';
import { UnsecuredJWT } from 'jose';
import { presets } from '../../../src/features/connections/social/presets.ts';
import { SOCIAL_STRATEGIES, type SocialStrategyName } from '../../../src/records/connections/social.ts';
import { createAgent } from '../../support/agent.ts';
import { tenant } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { type SocialProvider, startSocialProvider } from '../../support/social-provider.ts';
import { fromProvider, logInUpstream, toProvider } from '../../support/upstream-login.ts';
import { KNOWN } from './answers.ts';

const CLIENT = { client_id: 'our id', client_secret: 's/cret+1' };

describe('logins at well-known providers', () => {
  let provider: SocialProvider;
  let server: TestServer;
  before(async () => {
    provider = await startSocialProvider();
    const own = {
      ...CLIENT,
      authorizationURL: `${provider.url}/authorize`,
      tokenURL: `${provider.url}/token`,
      userInfoURL: `${provider.url}/userinfo`,
    };
    const connection = (name: string, strategy: string, options: object) => ({
      name,
      strategy,
      enabled_clients: ['web'],
      options,
    });
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [
          ...tenant.clients,
          {
            client_id: 'reader',
            name: 'Reader',
            app_type: 'non_interactive',
            client_secret: 'reader-secret',
            grant_types: ['client_credentials'],
          },
        ],
        connections: [
          ...SOCIAL_STRATEGIES.map((name) => connection(name, name, own)),
          connection('scoped', 'facebook', { ...own, scope: 'email,public_profile', user_birthday: true }),
          connection('listed', 'github', { ...own, scope: ['user:email'], freeform_scopes: ['project'] }),
          connection('with-email', 'twitter', { ...own, email: true }),
          connection('params', 'gitlab', {
            ...own,
            upstream_params: { hd: { value: 'example.test' }, login: { alias: 'login_hint' } },
          }),
        ],
      },
    });
    await server.store.collection('clientGrants').insert({
      id: 'cgr_reader',
      client_id: 'reader',
      audience: `${server.issuer}api/v2/`,
      scope: ['read:users', 'read:user_idp_tokens'],
    } as never);
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });
  beforeEach(() => {
    for (const path of Object.keys(provider.answers)) delete provider.answers[path];
  });

  const answer = (answers: Record<string, object | string>) => {
    for (const [path, one] of Object.entries(answers)) provider.answers[`/userinfo${path}`] = one;
  };
  const userOf = async (id: string) => {
    const user = await server.users.get(id);
    if (user === undefined) throw new Error(`there is no user ${id}`);
    return user;
  };

  /** Returns the provider's tokens as the Management API returns them. */
  const tokensOf = async (id: string) => {
    const agent = createAgent(server);
    const client = { client_id: 'reader', client_secret: 'reader-secret' };
    const audience = `${server.issuer}api/v2/`;
    const json = { grant_type: 'client_credentials', ...client, audience };
    const { access_token } = (await agent.request('/oauth/token', { json })).json();
    const answer = await agent.get(`/api/v2/users/${encodeURIComponent(id)}`, {
      authorization: `Bearer ${access_token}`,
    });
    const [identity] = answer.json().identities;
    return [identity.access_token, identity.refresh_token];
  };

  for (const name of SOCIAL_STRATEGIES) {
    it(`identify the user by the provider's id, with the address verified if the provider says so: ${name}`, async () => {
      const known = KNOWN[name];
      answer(known.answers);
      const login = await toProvider(server, { connection: name });
      expect(login.at.searchParams.get('scope') ?? '').to.equal(known.scope);
      expect(login.at.searchParams.has('code_challenge')).to.equal(presets[name].pkce === true);
      const outcome = await fromProvider(server, login);
      expect(outcome.location).to.contain('code=');
      const user = await userOf(`${name}|${known.id}`);
      expect(user).to.deep.include(known.profile);
      if (!('email' in known.profile)) expect(user).not.to.have.property('email');
      const [identity] = await server.users.identitiesOf(user.id);
      expect(identity).to.deep.include({
        provider: name,
        connection: name,
        upstream_id: known.id,
        isSocial: true,
      });
    });

    it(`authenticate the client as the provider expects: ${name}`, async () => {
      answer(KNOWN[name].answers);
      await logInUpstream(server, { connection: name });
      const { form, headers } = provider.last('/token');
      expect(form).to.include({ grant_type: 'authorization_code', code: 'their-code', client_id: 'our id' });
      const basic = `Basic ${Buffer.from('our+id:s%2Fcret%2B1').toString('base64')}`;
      expect([form.client_secret, headers.authorization]).to.deep.equal(
        presets[name].basic ? [undefined, basic] : ['s/cret+1', undefined],
      );
      const profile = provider.last('/userinfo');
      expect(profile.headers).to.include({ authorization: 'Bearer their-token', 'user-agent': 'Gatehouse' });
      expect(profile.method).to.equal(name === ('dropbox' satisfies SocialStrategyName) ? 'POST' : 'GET');
    });
  }

  it('send Facebook the appsecret_proof', async () => {
    answer(KNOWN.facebook.answers);
    await logInUpstream(server, { connection: 'facebook' });
    const { query } = provider.last('/userinfo');
    const proof = createHmac('sha256', CLIENT.client_secret).update('their-token').digest('hex');
    expect(query.appsecret_proof).to.equal(proof);
    expect(query.fields).to.contain('email');
  });

  it('request the address from X only if the connection does', async () => {
    answer(KNOWN.twitter.answers);
    const login = await toProvider(server, { connection: 'with-email' });
    expect(login.at.searchParams.get('scope')).to.equal('users.read tweet.read users.email');
    await fromProvider(server, login);
    expect(provider.last('/userinfo').query['user.fields']).to.contain('confirmed_email');
    await logInUpstream(server, { connection: 'twitter' });
    expect(provider.last('/userinfo').query['user.fields']).not.to.contain('confirmed_email');
  });

  it('send Twitch the client id', async () => {
    answer(KNOWN.twitch.answers);
    await logInUpstream(server, { connection: 'twitch' });
    expect(provider.last('/userinfo').headers['client-id']).to.equal('our id');
  });

  it('read LINE’s address from the ID token of the same user, as unverified', async () => {
    const { sub } = KNOWN.line.answers[''] as { sub: string };
    const logInAs = async (id: string, idToken: unknown) => {
      answer({ '': { ...KNOWN.line.answers[''], sub: id } });
      provider.answers['/token'] = { access_token: 'their-token', token_type: 'Bearer', id_token: idToken };
      expect(await logInUpstream(server, { connection: 'line' })).to.have.property('code');
      return userOf(`line|${id}`);
    };
    const unsigned = (claims: object) => new UnsecuredJWT({ ...claims }).encode();
    const claims = { sub, email: 'grace@example.test', email_verified: true };
    expect(await logInAs(sub, unsigned(claims))).to.include({ email: claims.email, email_verified: false });
    expect(await logInAs('U-2', unsigned(claims))).not.to.have.property('email');
    expect(await logInAs('U-3', 'a.b.c')).not.to.have.property('email');
    expect(await logInAs('U-4', 7)).not.to.have.property('email');
  });

  it('store the provider’s tokens, and renew them with its client authentication', async () => {
    provider.answers['/token'] = {
      access_token: 'their-token',
      refresh_token: 'their-refresh',
      expires_in: 3600,
      token_type: 'bearer',
    };
    answer(KNOWN.spotify.answers);
    await logInUpstream(server, { connection: 'spotify' });
    expect(await tokensOf('spotify|grace')).to.deep.equal(['their-token', 'their-refresh']);
    server.tick(3_601_000);
    provider.answers['/token'] = { access_token: 'renewed', token_type: 'bearer' };
    expect(await tokensOf('spotify|grace')).to.deep.equal(['renewed', 'their-refresh']);
    const { form, headers } = provider.last('/token');
    expect(form).to.include({ grant_type: 'refresh_token', refresh_token: 'their-refresh' });
    expect(headers.authorization).to.match(/^Basic /);
  });

  describe('request the scopes', () => {
    const scopeOf = async (connection: string, more = {}) =>
      (await toProvider(server, { connection, ...more })).at.searchParams.get('scope');

    it('of a string with commas, and of boolean options', async () => {
      expect(await scopeOf('scoped')).to.equal('public_profile email user_birthday');
    });
    it('of a list, and of freeform_scopes', async () => {
      expect(await scopeOf('listed')).to.equal('user:email project');
    });
    it('of connection_scope in addition', async () => {
      expect(await scopeOf('listed', { connection_scope: 'read:org,gist' })).to.equal(
        'user:email project read:org gist',
      );
    });
  });

  it('send the parameters of upstream_params', async () => {
    const { at } = await toProvider(server, { connection: 'params', login_hint: 'grace' });
    expect(Object.fromEntries(at.searchParams)).to.include({ hd: 'example.test', login: 'grace' });
  });
});
