// The stand-in of the hosted service answers as the tests of a move need it.
import { expect } from 'chai';
import { REALM_GRANT } from '../factors/tenant.ts';
import { createAgent } from '../support/agent.ts';
import { MOVE_CLIENT, OLD, type StandIn, startStandIn } from './stand-in.ts';

describe('the stand-in of the hosted service', () => {
  let old: StandIn;
  before(async () => {
    old = await startStandIn();
  });
  after(() => old.stop());
  afterEach(() => old.reset());

  const agent = () => createAgent({ url: old.origin, ca: old.ca });
  const token = (form: Record<string, string>) =>
    agent().request('/oauth/token', { form: { ...MOVE_CLIENT, ...form } });
  const login = ({ email, password }: { email: string; password: string }) =>
    token({ grant_type: REALM_GRANT, realm: 'users', username: email, password, scope: 'openid' });

  it('verifies the passwords of users with bcrypt and argon2 hashes, and names its own origin as the issuer', async () => {
    for (const user of [OLD.bcrypt, OLD.argon2, OLD.linked, OLD.unverified]) {
      const answer = await login(user);
      expect(answer.status, answer.text).to.equal(200);
      const claims = JSON.parse(Buffer.from(answer.json().id_token.split('.')[1], 'base64url').toString());
      expect(claims).to.include({ iss: `${old.origin}/`, sub: user.id, aud: MOVE_CLIENT.client_id });
    }
  });

  it('refuses wrong passwords, users without one and blocked users in the words of the hosted service', async () => {
    expect((await login({ ...OLD.bcrypt, password: 'wrong' })).json()).to.deep.equal({
      error: 'invalid_grant',
      error_description: 'Wrong email or password.',
    });
    expect((await login(OLD.none)).json().error).to.equal('invalid_grant');
    expect((await login(OLD.blocked)).json()).to.deep.equal({
      error: 'unauthorized',
      error_description: 'user is blocked',
    });
  });

  it('asks users with a second factor for it', async () => {
    for (const user of [OLD.otp, OLD.sms]) {
      const answer = await login(user);
      expect(answer.status).to.equal(403);
      expect(answer.json().error).to.equal('mfa_required');
    }
  });

  it('shows its users by its Management API, with linked identities', async () => {
    const audience = `${old.origin}/api/v2/`;
    const { access_token } = (await token({ grant_type: 'client_credentials', audience })).json();
    const found = await agent().get(`/api/v2/users-by-email?email=${encodeURIComponent(OLD.linked.email)}`, {
      authorization: `Bearer ${access_token}`,
    });
    const [user] = JSON.parse(found.text);
    expect(user.user_id).to.equal(OLD.linked.id);
    expect(user.identities.map(({ provider }: { provider: string }) => provider)).to.deep.equal([
      'auth0',
      'google-oauth2',
    ]);
    const factors = await agent().get(`/api/v2/users/${OLD.sms.id}/authentication-methods`, {
      authorization: `Bearer ${access_token}`,
    });
    expect(JSON.parse(factors.text)[0]).to.include({ type: 'phone', phone_number: OLD.sms.phone });
  });

  it('has no pages of our own, and answers 429 when a limit is used up', async () => {
    expect((await agent().get('/dev/inbox')).status).to.equal(404);
    old.left.token = 1;
    expect((await login(OLD.bcrypt)).status).to.equal(200);
    const limited = await login(OLD.bcrypt);
    expect(limited.status).to.equal(429);
    expect(limited.headers).to.include({ 'x-ratelimit-remaining': '0', 'retry-after': '1' });
  });
});
