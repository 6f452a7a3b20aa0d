import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import {
  API,
  logIn,
  PASSWORD_REQUEST,
  payload,
  pkce,
  responseOf,
  spaRequest,
  spaTokens,
  tenant,
  token,
  USER,
  webRequest,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('/userinfo', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startServer({ tenant });
  });
  afterEach(() => server.stop());

  const agent = () => createAgent(server);
  const ask = (accessToken: string) => agent().get('/userinfo', { authorization: `Bearer ${accessToken}` });
  const webTokens = async (scope: string, audience?: string) =>
    (
      await token(agent(), {
        ...PASSWORD_REQUEST,
        scope,
        audience,
      })
    ).json();

  it('returns the profile for an opaque token in the header', async () => {
    const answer = await ask((await webTokens('openid profile email')).access_token);
    expect(answer.status).to.equal(200);
    expect(answer.json()).to.include({ email: USER.email, email_verified: true, nickname: 'ada' });
    expect(answer.json().sub).to.match(/^auth0\|[0-9a-f]{24}$/);
  });

  it('returns the profile for an API’s JWT', async () => {
    const answer = await ask((await webTokens('openid profile email', API)).access_token);
    expect(answer.json()).to.include({ email: USER.email });
  });

  it('accepts the token in the query, and in a form or JSON body', async () => {
    const { access_token } = await webTokens('openid email');
    expect((await agent().get(`/userinfo?access_token=${access_token}`)).json()).to.have.property('email');
    expect((await agent().request('/userinfo', { form: { access_token } })).json()).to.have.property('email');
    expect((await agent().request('/userinfo', { json: { access_token } })).json()).to.have.property('email');
  });

  it('returns only claims of granted scopes', async () => {
    expect((await ask((await webTokens('openid')).access_token)).json()).to.have.all.keys('sub');
    expect((await ask((await webTokens('openid email')).access_token)).json()).to.have.all.keys(
      'sub',
      'email',
      'email_verified',
    );
  });

  it('returns phone number and address with their scopes', async () => {
    const { sub } = (await ask((await webTokens('openid')).access_token)).json();
    await server.users.update(sub, {
      phone_number: '+4915112345678',
      phone_verified: true,
      address: { country: 'DE' },
    });
    const answer = await ask((await webTokens('openid phone address')).access_token);
    expect(answer.json()).to.deep.equal({
      sub,
      phone_number: '+4915112345678',
      phone_number_verified: true,
      address: { country: 'DE' },
    });
  });

  it('returns single claims of the claims parameter, here and in the ID token, and no others', async () => {
    const claims = JSON.stringify({
      userinfo: { nickname: null },
      id_token: { email: null, auth_time: { essential: true } },
    });
    const request = spaRequest(pkce().challenge, {
      response_type: 'token id_token',
      scope: 'openid',
      claims,
    });
    const { access_token, id_token } = responseOf(await logIn(agent(), server, request));
    expect((await ask(access_token!)).json()).to.have.all.keys('sub', 'nickname');
    expect(payload(id_token!)).to.include({ email: USER.email }).and.not.to.have.any.keys('nickname', 'name');
  });

  it('returns updated_at as a string of epoch seconds, or as ISO 8601 to an OIDC-conformant application', async () => {
    const plain = (await ask((await webTokens('openid profile')).access_token)).json();
    expect(plain.updated_at).to.match(/^\d{10}$/);
    const conformant = (await ask((await spaTokens(agent(), server)).access_token)).json();
    expect(conformant.updated_at).to.match(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  it('returns the e-mail address as it was at login, and the other claims as they are now', async () => {
    const { access_token: opaque } = await webTokens('openid profile email');
    const { access_token: jwt } = await webTokens('openid profile email', API);
    const { sub } = (await ask(opaque)).json();
    server.tick(2000);
    await server.users.update(sub, { email: 'new@example.test', name: 'Countess' });
    for (const accessToken of [opaque, jwt]) {
      expect((await ask(accessToken)).json()).to.include({ email: USER.email, name: 'Countess' });
    }
    server.tick(2000);
    const fresh = (
      await token(agent(), {
        grant_type: 'password',
        client_id: 'web',
        client_secret: 'web-secret',
        username: 'new@example.test',
        password: USER.password,
        scope: 'openid email',
      })
    ).json();
    expect((await ask(fresh.access_token)).json()).to.include({ email: 'new@example.test' });
  });

  describe('refuses', () => {
    const refused = async (accessToken: string) => {
      const answer = await ask(accessToken);
      expect(answer.status).to.equal(401);
      expect(answer.text).to.equal('Unauthorized');
      expect(answer.headers['www-authenticate']).to.match(/^Bearer .*error="invalid_token"/);
    };

    it('no token', async () => {
      const answer = await agent().get('/userinfo');
      expect(answer.status).to.equal(401);
      expect(answer.headers['www-authenticate'])
        .to.match(/^Bearer/)
        .and.not.to.match(/error=/);
    });

    it('a token it never issued', () => refused('made-up'));

    it('a JWT with another signature', async () => {
      const { access_token } = await webTokens('openid', API);
      const [head, body] = String(access_token).split('.');
      await refused(`${head}.${body}.${Buffer.from('forged').toString('base64url')}`);
    });

    it('a JWT whose header says alg none', async () => {
      const { access_token } = await webTokens('openid', API);
      const [, body] = String(access_token).split('.');
      await refused(`${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`);
    });

    it('an ID token', async () => refused((await webTokens('openid')).id_token));

    it('a JWT of client_credentials', async () => {
      const answer = await token(agent(), {
        grant_type: 'client_credentials',
        client_id: 'm2m',
        client_secret: 'm2m-secret',
        audience: API,
      });
      await refused(answer.json().access_token);
    });

    it('an expired token, opaque or JWT', async () => {
      const { access_token: jwt } = await webTokens('openid', API);
      const { access_token: opaque } = await webTokens('openid');
      server.tick(3601 * 1000);
      await refused(jwt);
      expect((await ask(opaque)).status).to.equal(200);
      server.tick(86400 * 1000);
      await refused(opaque);
    });

    it('the token of a user who is deleted or blocked', async () => {
      const { access_token } = await webTokens('openid');
      const { sub } = (await ask(access_token)).json();
      await server.users.update(sub, { blocked: true });
      await refused(access_token);
    });

    it('a token without openid, as insufficient_scope', async () => {
      const { access_token } = await webTokens('profile');
      const answer = await ask(access_token);
      expect(answer.status).to.equal(403);
      expect(answer.headers['www-authenticate']).to.contain('error="insufficient_scope"');
    });

    it('a token that is sent twice', async () => {
      const { access_token } = await webTokens('openid');
      const answer = await agent().get(`/userinfo?access_token=${access_token}`, {
        authorization: `Bearer ${access_token}`,
      });
      expect(answer.status).to.equal(400);
    });
  });

  describe('its rate limit', () => {
    it('takes one per request, answers 429 when it is used up, and gains one per minute', async () => {
      const { access_token } = await webTokens('openid');
      const first = await ask(access_token);
      const limit = Number(first.headers['x-ratelimit-limit']);
      expect(Number(first.headers['x-ratelimit-remaining'])).to.equal(limit - 1);
      expect(Number(first.headers['x-ratelimit-reset'])).to.be.above(1_000_000_000);
      for (let used = 1; used < limit; used++) expect((await ask(access_token)).status).to.equal(200);
      const over = await ask(access_token);
      expect(over.status).to.equal(429);
      expect(over.json()).to.have.property('error', 'too_many_requests');
      expect(over.json().error_description).to.contain('X-RateLimit');
      expect(Number(over.headers['retry-after'])).to.be.within(1, 60);
      server.tick(60_000);
      expect((await ask(access_token)).status).to.equal(200);
      expect((await ask(access_token)).status).to.equal(429);
    });

    it('is separate for each user', async () => {
      const { access_token } = await webTokens('openid');
      for (let i = 0; i < 20; i++) await ask(access_token);
      expect((await ask(access_token)).status).to.equal(429);
      const { challenge } = pkce();
      expect(challenge).to.be.a('string');
      const other = responseOf(
        await logIn(agent(), server, webRequest({ response_type: 'token', connection: 'staff' }), {
          email: 'staff1',
          password: USER.password,
        }),
      );
      expect((await ask(other.access_token!)).status).to.equal(200);
    });
  });

  it('sends its answer to any application origin, with the rate headers readable', async () => {
    const { access_token } = await webTokens('openid');
    const answer = await agent().get('/userinfo', {
      authorization: `Bearer ${access_token}`,
      origin: 'http://localhost:5173',
    });
    expect(answer.headers['access-control-allow-origin']).to.equal('http://localhost:5173');
    expect(answer.headers['access-control-expose-headers']).to.contain('x-ratelimit-remaining');
    const foreign = await agent().get('/userinfo', {
      authorization: `Bearer ${access_token}`,
      origin: 'https://evil.example',
    });
    expect(foreign.headers).not.to.have.property('access-control-allow-origin');
    expect(spaRequest('x')).to.have.property('client_id', 'spa');
  });
});
