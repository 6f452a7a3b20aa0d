// docs/do/runbooks/key-compromise.md, rehearsed: a thief has a copy of the store and its key, and signs tokens.
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { importJWK, SignJWT } from 'jose';
import { listAll } from '../../src/store/list-all.ts';
import { openStore } from '../../src/store/open.ts';
import { API, payload, spaTokens, token, USER } from '../support/flows.ts';
import { type Place, startPlace } from './place.ts';
import { signUp, tenant, WEB } from './tenant.ts';

const kidsIn = (output: string) => output.trim().split('\n');

describe('the runbook for a signing key that is compromised', () => {
  let place: Place;
  let stolen: { kid: string; forge(claims: object): Promise<string> }[];
  let accessToken: string;
  let refreshToken: string;
  before(async () => {
    const resourceServers = [{ name: 'API', identifier: API, scopes: [{ value: 'read:things' }] }];
    place = await startPlace({ page: 'key-compromise', tenant: { ...tenant, resourceServers } });
    expect((await signUp(place, USER.email)).status).to.equal(200);
    accessToken = await apiToken();
    const scope = 'openid offline_access';
    refreshToken = (await spaTokens(place.agent(), place, { scope })).refresh_token;
    stolen = await steal();
  });
  after(() => place?.stop());

  const apiToken = async () => {
    const json = { grant_type: 'password', ...WEB, username: USER.email, password: USER.password };
    const answer = await place
      .agent()
      .request('/oauth/token', { json: { ...json, audience: API, scope: 'openid' } });
    expect(answer.status, answer.text).to.equal(200);
    return String(answer.json().access_token);
  };
  const userinfo = async (bearer: string) =>
    (await place.agent().get('/userinfo', { authorization: `Bearer ${bearer}` })).status;

  /** Copies the store and its key, and takes the keys that sign now and next. */
  async function steal() {
    const dataDir = join(place.root, 'stolen');
    for (const name of ['store', 'keys'])
      cpSync(join(place.root, 'var/lib/gatehouse', name), join(dataDir, name), { recursive: true });
    const store = await openStore({ dataDir, clock: Date.now });
    const keys = await listAll(store.collection('signingKeys'));
    await store.close();
    return keys.map(({ id: kid, jwk }) => ({
      kid,
      forge: async (claims: object) =>
        new SignJWT({ ...claims })
          .setProtectedHeader({ alg: 'RS256', typ: 'JWT', kid })
          .sign(await importJWK(jwk as Parameters<typeof importJWK>[0], 'RS256')),
    }));
  }

  it('begins with forged tokens that are accepted', async () => {
    const kids = kidsIn(await place.step('look'));
    expect(kids).to.include.members(stolen.map(({ kid }) => kid));
    expect(stolen).to.have.length(2);
    for (const { forge } of stolen) {
      const forged = await forge({ ...payload(accessToken), exp: payload(accessToken).exp + 86_400 });
      expect(await userinfo(forged)).to.equal(200);
    }
  });

  it('refuses each of them afterwards, while sessions and refresh tokens go on', async () => {
    await place.step('rotate');
    const kids = kidsIn(await place.step('over'));
    expect(kids.filter((kid) => stolen.some((one) => one.kid === kid))).to.deep.equal([]);
    for (const { forge } of stolen) expect(await userinfo(await forge(payload(accessToken)))).to.equal(401);
    expect(await userinfo(accessToken)).to.equal(401);
    expect(await userinfo(await apiToken())).to.equal(200);
    const json = { grant_type: 'refresh_token', client_id: 'spa', refresh_token: refreshToken };
    const refreshed = await token(place.agent(), json);
    expect(refreshed.status, refreshed.text).to.equal(200);
    place.expectAllRun();
  });
});
