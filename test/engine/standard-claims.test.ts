// `standard_claims`: applications with it get claims as OpenID Connect Core defines them, all others as SDKs read
// them.
import { expect } from 'chai';
import { readTenant, type TenantFault } from '../../src/tenant/load.ts';
import { createAgent } from '../support/agent.ts';
import {
  API,
  tenant as base,
  logIn,
  payload,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  token,
  USER,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const PERSONAL = ['email', 'email_verified', 'name', 'nickname', 'updated_at'] as const;

/**
 * The tenant with copies of its web application, one with the setting and one that refuses the tenant's default.
 */
function tenantWith(flags: object, key?: boolean) {
  const [spa] = base.clients;
  const web = base.clients.find(({ client_id }) => client_id === 'web');
  const like = (client_id: string, over: object) => ({
    ...(client_id.startsWith('spa') ? spa : web),
    client_id,
    name: client_id,
    ...over,
  });
  const keyed = key === undefined ? {} : { standard_claims: key };
  return {
    ...base,
    tenant: { ...base.tenant, flags },
    clients: [...base.clients, like('spa-2', keyed), like('web-2', { ...keyed, oidc_conformant: true })],
    databases: base.databases.map((database) => ({
      ...database,
      enabled_clients: [...database.enabled_clients, 'spa-2', 'web-2'],
    })),
  };
}

describe('the claims of an application', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const { verifier, challenge } = pkce();
  const ask = (accessToken: string) =>
    createAgent(server).get('/userinfo', { authorization: `Bearer ${accessToken}` });
  const authorized = async (over: Record<string, string | undefined> = {}) =>
    responseOf(
      await logIn(createAgent(server), server, spaRequest(challenge, { client_id: 'spa-2', ...over })),
    );
  const codeTokens = async (over: Record<string, string | undefined> = {}) =>
    (
      await token(createAgent(server), {
        grant_type: 'authorization_code',
        client_id: 'spa-2',
        code: (await authorized(over)).code,
        code_verifier: verifier,
        redirect_uri: SPA_CALLBACK,
      })
    ).json();
  const byPassword = async (audience?: string) =>
    (
      await token(createAgent(server), {
        grant_type: 'password',
        client_id: 'web-2',
        client_secret: 'web-secret',
        username: USER.email,
        password: USER.password,
        scope: 'openid profile email',
        audience,
      })
    ).json();

  describe('with standard_claims: true', () => {
    beforeEach(async () => {
      server = await startServer({ tenant: tenantWith({}, true) });
    });

    it('have updated_at as a number of seconds, at /userinfo and in ID tokens (§5.1)', async () => {
      for (const tokens of [await codeTokens(), await byPassword(), await byPassword(API)]) {
        const { updated_at } = (await ask(tokens.access_token)).json();
        expect(updated_at).to.be.a('number').and.to.be.within(1_600_000_000, 5_000_000_000);
        expect(Number.isInteger(updated_at)).to.equal(true);
      }
      const { id_token } = await authorized({ response_type: 'id_token' });
      expect(payload(id_token!).updated_at).to.be.a('number');
    });

    it('are not in the ID token when an access token for /userinfo is issued (§5.4)', async () => {
      const refreshable = await codeTokens({ scope: 'openid profile email offline_access' });
      const refreshed = await token(createAgent(server), {
        grant_type: 'refresh_token',
        client_id: 'spa-2',
        refresh_token: refreshable.refresh_token,
      });
      const hybrid = await authorized({ response_type: 'code id_token' });
      const implicit = await authorized({ response_type: 'id_token token' });
      for (const id_token of [
        refreshable.id_token,
        refreshed.json().id_token,
        (await byPassword()).id_token,
        (await byPassword(API)).id_token,
        hybrid.id_token,
        implicit.id_token,
      ]) {
        expect(payload(id_token))
          .to.include.keys('sub', 'iss', 'aud')
          .and.not.have.any.keys(...PERSONAL);
      }
      expect((await ask(implicit.access_token!)).json()).to.include.keys(...PERSONAL);
    });

    it('are in the ID token when no access token is issued', async () => {
      const { id_token } = await authorized({ response_type: 'id_token' });
      expect(payload(id_token!)).to.include.keys(...PERSONAL);
    });

    it('include in the ID token those of the claims parameter (§5.5)', async () => {
      const claims = JSON.stringify({ id_token: { email: null, updated_at: null } });
      const { id_token } = await codeTokens({ claims });
      expect(payload(id_token)).to.include({ email: USER.email }).and.not.have.any.keys('name', 'nickname');
      expect(payload(id_token).updated_at).to.be.a('number');
    });

    it('include acr only when requested (§2, §3.1.2.1)', async () => {
      const claims = JSON.stringify({ id_token: { acr: null } });
      for (const over of [{ acr_values: 'urn:a urn:b' }, { claims }]) {
        expect(payload((await codeTokens(over)).id_token), JSON.stringify(over)).to.have.property('acr', '0');
        const { id_token } = await authorized({ ...over, response_type: 'id_token' });
        expect(payload(id_token!)).to.have.property('acr', '0');
      }
      expect(payload((await codeTokens()).id_token)).not.to.have.property('acr');
    });
  });

  describe('without it', () => {
    beforeEach(async () => {
      server = await startServer({ tenant: tenantWith({}) });
    });

    it('have the form that SDKs read', async () => {
      const tokens = await codeTokens({ acr_values: 'urn:a' });
      expect(payload(tokens.id_token))
        .to.include.keys(...PERSONAL)
        .and.not.have.property('acr');
      expect((await ask(tokens.access_token)).json().updated_at).to.match(/^\d{4}-\d\d-\d\dT/);
    });
  });

  describe('with flags.standard_claims of the tenant', () => {
    const updatedAt = async () => (await ask((await codeTokens()).access_token)).json().updated_at;

    it('are the standard ones when the application has no setting', async () => {
      server = await startServer({ tenant: tenantWith({ standard_claims: true }) });
      expect(await updatedAt()).to.be.a('number');
      expect(payload((await codeTokens()).id_token)).not.to.have.any.keys(...PERSONAL);
    });

    it("follow the application's setting when it has one", async () => {
      server = await startServer({ tenant: tenantWith({ standard_claims: true }, false) });
      expect(await updatedAt()).to.be.a('string');
      expect(payload((await codeTokens()).id_token)).to.include.keys(...PERSONAL);
    });
  });
});

describe('standard_claims that is no boolean', () => {
  const faults = (tenant: object): readonly string[] => {
    try {
      readTenant(tenant);
      return [];
    } catch (thrown) {
      return (thrown as TenantFault).faults;
    }
  };

  it('is refused in the tenant file, for the tenant and for an application', () => {
    expect(faults(tenantWith({ standard_claims: 'yes' })).join()).to.match(/tenant\.flags\.standard_claims/);
    expect(faults({ clients: [{ client_id: 'x', name: 'X', standard_claims: 1 }] }).join()).to.match(
      /clients[.[]0\]?\.standard_claims/,
    );
  });
});
