// Access tokens of users for the Management API: what ends them, and what the login that they were issued for has to
// have. JWTs for other APIs end for us with the same events.
import { expect } from 'chai';
import { toResource } from '../../src/engine/base/request-extensions.ts';
import { rememberConsent } from '../../src/engine/token/token-grants.ts';
import { createAgent } from '../support/agent.ts';
import { API, tenant as base, logIn, responseOf, token, webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from './support.ts';

const OWN =
  'read:current_user update:current_user_metadata delete:current_user update:current_user_identities';
const TOTP = 'JBSWY3DPEHPK3PXP';
const WEB = { client_id: 'web', client_secret: 'web-secret' };
const tenant = { ...base, guardianFactors: [{ name: 'otp', enabled: true }] };

interface Person {
  id: string;
  email: string;
  password: string;
}

describe('a user’s token for the Management API', () => {
  let server: TestServer;
  let call: ManagementCall;
  let people = 0;
  before(async () => {
    server = await startManaged(tenant);
    call = callsWith(server, await managementToken(server));
  });
  after(() => server.stop());

  const pathOf = ({ id }: Person) => `/users/${encodeURIComponent(id)}`;
  const someone = async (): Promise<Person> => {
    const email = `own-${people++}@example.test`;
    const password = `Own-Password-${people}`;
    const made = await call('POST', '/users', { connection: 'users', email, password, email_verified: true });
    expect(made.status, made.text).to.equal(201);
    return { id: made.json().user_id, email, password };
  };
  const audience = () => `${server.issuer}api/v2/`;
  const loginOf = async (one: Person, scope: string, audience: string) => {
    const agent = createAgent(server);
    await rememberConsent(server.store, one.id, 'web', {
      '': ['openid', 'email'],
      [toResource(audience)]: scope.split(' '),
    });
    const asked = webRequest({ audience, scope: `openid email ${scope}` });
    const { code } = responseOf(await logIn(agent, server, asked, one));
    const redirect_uri = String(asked.redirect_uri);
    const answer = await token(agent, { grant_type: 'authorization_code', ...WEB, code, redirect_uri });
    expect(answer.status, answer.text).to.equal(200);
    return { agent, bearer: answer.json().access_token as string };
  };
  const ownToken = async (one: Person) => (await loginOf(one, OWN, audience())).bearer;
  const read = async (one: Person, bearer: string) =>
    (await call('GET', pathOf(one), undefined, bearer)).status;
  const note = (one: Person, bearer: string) =>
    call('PATCH', pathOf(one), { user_metadata: { color: 'red' } }, bearer);
  const remove = (one: Person, bearer: string) => call('DELETE', pathOf(one), undefined, bearer);
  const isThere = async (one: Person) => (await call('GET', pathOf(one))).status === 200;
  const setDeletion = async (allow_deletion: boolean) => {
    const answer = await call('PATCH', '/tenants/settings', { account_page: { allow_deletion } });
    expect(answer.status, answer.text).to.equal(200);
  };

  it('ends with the password of its login', async () => {
    const one = await someone();
    const bearer = await ownToken(one);
    expect(await read(one, bearer)).to.equal(200);
    const changed = await call('PATCH', pathOf(one), { connection: 'users', password: 'Another-Word-2' });
    expect(changed.status, changed.text).to.equal(200);
    expect([await read(one, bearer), (await note(one, bearer)).status]).to.deep.equal([401, 401]);
  });

  it('ends with the session of its login', async () => {
    const one = await someone();
    const { agent, bearer } = await loginOf(one, OWN, audience());
    expect(await read(one, bearer)).to.equal(200);
    await agent.get('/v2/logout?client_id=web');
    expect([await read(one, bearer), (await note(one, bearer)).status]).to.deep.equal([401, 401]);
  });

  it('neither reads nor changes when its user has a second factor that its login did not prove', async () => {
    const one = await someone();
    const bearer = await ownToken(one);
    const factor = { type: 'totp', name: 'app', totp_secret: TOTP };
    expect((await call('POST', `${pathOf(one)}/authentication-methods`, factor)).status).to.equal(201);
    const answer = await note(one, bearer);
    expect([answer.status, answer.json().errorCode]).to.deep.equal([401, 'insufficient_user_authentication']);
    expect(await read(one, bearer)).to.equal(401);
  });

  it('unlinks and deletes only within ten minutes of its login', async () => {
    const one = await someone();
    const bearer = await ownToken(one);
    server.tick(601_000);
    expect((await note(one, bearer)).status).to.equal(200);
    const unlinked = await call('DELETE', `${pathOf(one)}/identities/auth0/x`, undefined, bearer);
    expect([unlinked.status, (await remove(one, bearer)).status]).to.deep.equal([401, 401]);
    expect(await isThere(one)).to.equal(true);
  });

  it('deletes its user only where the tenant lets users delete their accounts', async () => {
    const [one, other] = [await someone(), await someone()];
    await setDeletion(false);
    const refused = await remove(one, await ownToken(one));
    expect([refused.status, refused.json().errorCode]).to.deep.equal([403, 'operation_not_supported']);
    expect(await isThere(one)).to.equal(true);
    await setDeletion(true);
    expect((await remove(other, await ownToken(other))).status).to.equal(204);
    expect(await isThere(other)).to.equal(false);
  });

  it('of a third-party application does not delete its user, whatever the user has consented to', async () => {
    const one = await someone();
    await setDeletion(true);
    const bearer = await ownToken(one);
    expect((await call('PATCH', '/clients/web', { is_first_party: false })).status).to.equal(200);
    try {
      const refused = await remove(one, bearer);
      expect([refused.status, refused.json().errorCode]).to.deep.equal([403, 'operation_not_supported']);
      const key = { type: 'public_key', device_name: 'd', device_id: 'd', value: 'key' };
      const device = await call('POST', '/device-credentials', key, bearer);
      expect(device.status, device.text).to.equal(403);
      expect((await note(one, bearer)).status).to.equal(200);
      expect(await isThere(one)).to.equal(true);
    } finally {
      await call('PATCH', '/clients/web', { is_first_party: true });
    }
  });

  it('shares with JWTs for other APIs what ends them: a new password, and the end of all access', async () => {
    const userinfo = async (bearer: string) =>
      (await createAgent(server).get('/userinfo', { authorization: `Bearer ${bearer}` })).status;
    for (const end of [
      (one: Person) => call('PATCH', pathOf(one), { connection: 'users', password: 'Another-Word-2' }),
      (one: Person) => call('PATCH', pathOf(one), { blocked: true }),
      async (one: Person) => {
        await call('PATCH', pathOf(one), { blocked: true });
        return call('PATCH', pathOf(one), { blocked: false });
      },
    ]) {
      const one = await someone();
      const { bearer } = await loginOf(one, 'read:things', API);
      expect(await userinfo(bearer)).to.equal(200);
      server.tick(2_000);
      const ended = await end(one);
      expect(ended.status, ended.text).to.equal(200);
      expect(await userinfo(bearer)).to.equal(401);
    }
  });

  it('lets a token that is issued in the second of the new password, and after it, be used', async () => {
    const one = await someone();
    const next = { ...one, password: 'Another-Word-2' };
    const ask = (bearer: string) =>
      createAgent(server).get('/userinfo', { authorization: `Bearer ${bearer}` });
    const { bearer: before } = await loginOf(one, 'read:things', API);
    const changed = await call('PATCH', pathOf(one), { connection: 'users', password: next.password });
    expect(changed.status, changed.text).to.equal(200);
    const { bearer: after } = await loginOf(next, 'read:things', API);
    expect([(await ask(before)).status, (await ask(after)).status]).to.deep.equal([401, 200]);
  });
});
