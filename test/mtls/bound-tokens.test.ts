// Access tokens and refresh tokens that are bound to a client certificate (RFC 8705 §3, §4), and what a stolen one is
// worth.
import { expect } from 'chai';
import { type Agent, createAgent } from '../support/agent.ts';
import { clientCertificate, type TestCertificate } from '../support/client-certificate.ts';
import {
  logIn,
  payload,
  pkce,
  responseOf,
  SPA_CALLBACK,
  spaRequest,
  tenant,
  USER,
} from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const KEY = 'the-api-key-of-the-edge-of-login';
const REQUIRED = 'urn:required';
const ALLOWED = 'urn:allowed';
const PUBLIC = 'urn:public-clients';
const DPOP = 'urn:dpop';

describe('tokens that are bound to a certificate', () => {
  let server: TestServer;
  let own: TestCertificate;
  let other: TestCertificate;
  let expired: TestCertificate;

  before(async () => {
    own = await clientCertificate();
    other = await clientCertificate();
    expired = await clientCertificate({ from: -7_200_000, to: -3_600_000 });
    const api = (identifier: string, proof_of_possession: object) => ({
      name: identifier,
      identifier,
      scopes: [{ value: 'read' }],
      allow_offline_access: true,
      proof_of_possession,
    });
    const [spa] = tenant.clients;
    const robot = (client_id: string, over: object = {}) => ({
      client_id,
      name: client_id,
      app_type: 'non_interactive',
      client_secret: `${client_id}-secret`,
      grant_types: ['client_credentials', 'password', 'refresh_token'],
      ...over,
    });
    const robots = [
      robot('robot'),
      robot('bank', {
        client_secret: undefined,
        client_authentication_methods: {
          self_signed_tls_client_auth: { credentials: [{ pem: own.cert }, { pem: other.cert }] },
        },
      }),
      robot('bound-only', { require_proof_of_possession: true }),
    ];
    const apis = [
      api(REQUIRED, { mechanism: 'mtls', required: true }),
      api(ALLOWED, { mechanism: 'mtls', required: false }),
      api(PUBLIC, { mechanism: 'mtls', required: true, required_for: 'public_clients' }),
      api(DPOP, { mechanism: 'dpop', required: false }),
    ];
    const all = [...robots.map(({ client_id }) => client_id)];
    server = await startServer({
      tenant: tenantWith({
        add: {
          clients: [
            ...robots,
            { ...spa, client_id: 'bound-spa', name: 'Bound', require_proof_of_possession: true },
            {
              client_id: 'allowed-api',
              name: 'The API that allows it',
              app_type: 'resource_server',
              client_secret: 'allowed-api-secret',
              resource_server_identifier: ALLOWED,
              grant_types: [],
              token_exchange: { allow_any_profile_of_type: ['on_behalf_of_token_exchange'] },
            },
          ],
          resourceServers: [...apis],
          clientGrants: [
            ...[REQUIRED, PUBLIC, DPOP].map((audience) => ({
              client_id: 'allowed-api',
              audience,
              scope: ['read'],
              subject_type: 'user',
            })),
            ...all.flatMap((client_id) =>
              [...apis.map(({ identifier }) => identifier), 'https://tenant.example.test/api/v2/'].map(
                (audience) => ({
                  client_id,
                  audience,
                  scope: audience.startsWith('urn:') ? ['read'] : ['read:clients'],
                }),
              ),
            ),
          ],
        },
        enable: [...all, 'bound-spa'],
        customDomains: [{ domain: 'login.example.test', api_key: KEY }],
      }),
    });
  });
  after(() => server?.stop());

  const by = (certificate?: TestCertificate): Record<string, string> =>
    certificate === undefined
      ? { 'cname-api-key': KEY, 'client-certificate-ca-verified': 'NONE' }
      : {
          'cname-api-key': KEY,
          'client-certificate': encodeURIComponent(certificate.cert),
          'client-certificate-ca-verified': 'FAILED:self-signed certificate',
        };
  const ask = async (
    fields: Record<string, string>,
    certificate?: TestCertificate,
    agent: Agent = createAgent(server),
  ) => {
    const answer = await agent.request('/oauth/token', { headers: by(certificate), json: fields });
    return { status: answer.status, body: answer.json() };
  };
  const robot = (audience: string, certificate?: TestCertificate, client_id = 'robot') =>
    ask(
      {
        grant_type: 'client_credentials',
        client_id,
        audience,
        ...(client_id !== 'bank' && { client_secret: `${client_id}-secret` }),
      },
      certificate,
    );
  const cnfOf = (token: string) => payload(token).cnf as Record<string, string> | undefined;
  const bound = () => ({ 'x5t#S256': own.thumbprint });

  describe('for an API', () => {
    it('that requires it are issued only with a certificate', async () => {
      const { body } = await robot(REQUIRED, own);
      expect(cnfOf(body.access_token)).to.deep.equal(bound());
      expect(body.token_type).to.equal('Bearer');
      expect(await robot(REQUIRED)).to.deep.include({ status: 400 });
      expect((await robot(REQUIRED)).body.error).to.equal('invalid_request');
    });

    it('that allows it are bound if there is a certificate', async () => {
      expect(cnfOf((await robot(ALLOWED, own)).body.access_token)).to.deep.equal(bound());
      expect(cnfOf((await robot(ALLOWED)).body.access_token)).to.equal(undefined);
    });

    it('that requires it of public clients only are not bound without one', async () => {
      expect(cnfOf((await robot(PUBLIC)).body.access_token)).to.equal(undefined);
      expect(cnfOf((await robot(PUBLIC, own)).body.access_token)).to.deep.equal(bound());
    });

    it('that says nothing, or uses DPoP, are not bound to it', async () => {
      expect(cnfOf((await robot(DPOP, own)).body.access_token)).to.equal(undefined);
    });

    it('are refused with a reason when the certificate is not valid', async () => {
      expect(await robot(REQUIRED, expired)).to.deep.equal({
        status: 401,
        body: { error: 'invalid_client', error_description: 'The client certificate has expired' },
      });
    });

    it('are refused without a certificate to an application that requires binding', async () => {
      expect((await robot(ALLOWED, undefined, 'bound-only')).status).to.equal(400);
      expect(cnfOf((await robot(ALLOWED, own, 'bound-only')).body.access_token)).to.deep.equal(bound());
      // For an API that uses another proof a certificate does not help.
      expect((await robot(DPOP, own, 'bound-only')).status).to.equal(400);
    });

    it('are exchanged by the API for none that is bound to nothing, and for one that is bound to the API’s certificate', async () => {
      const { body } = await ask(
        {
          grant_type: 'password',
          client_id: 'robot',
          client_secret: 'robot-secret',
          username: USER.email,
          password: USER.password,
          audience: ALLOWED,
          scope: 'openid read',
        },
        own,
      );
      expect(cnfOf(body.access_token)).to.deep.equal(bound());
      const onBehalf = (audience: string, certificate?: TestCertificate) =>
        ask(
          {
            grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
            client_id: 'allowed-api',
            client_secret: 'allowed-api-secret',
            subject_token: body.access_token,
            subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
            audience,
          },
          certificate,
        );
      for (const audience of [REQUIRED, PUBLIC, DPOP]) {
        const bare = await onBehalf(audience);
        expect([bare.status, 'access_token' in bare.body], audience).to.deep.equal([400, false]);
      }
      // Where tokens are not bound to certificates, showing one binds nothing.
      expect((await onBehalf(DPOP, other)).status).to.equal(400);
      const acting = await onBehalf(PUBLIC, other);
      expect(acting.status, JSON.stringify(acting.body)).to.equal(200);
      expect(cnfOf(acting.body.access_token)).to.deep.equal({ 'x5t#S256': other.thumbprint });
    });

    it('are accepted at the Management API only with their certificate', async () => {
      const { body } = await robot(`${server.issuer}api/v2/`, own, 'bound-only');
      const call = (certificate?: TestCertificate) =>
        createAgent(server).get('/api/v2/clients', {
          authorization: `Bearer ${body.access_token}`,
          ...by(certificate),
        });
      expect((await call(own)).status).to.equal(200);
      for (const certificate of [undefined, other]) expect((await call(certificate)).status).to.equal(401);
    });

    it('are bound to the certificate that the client authenticates with', async () => {
      expect(cnfOf((await robot(REQUIRED, own, 'bank')).body.access_token)).to.deep.equal(bound());
      expect(cnfOf((await robot(REQUIRED, other, 'bank')).body.access_token)).to.deep.equal({
        'x5t#S256': other.thumbprint,
      });
    });
  });

  describe('with a user', () => {
    const password = (
      client_id: string,
      audience: string | undefined,
      certificate?: TestCertificate,
      scope = 'openid offline_access read',
    ) =>
      ask(
        {
          grant_type: 'password',
          client_id,
          ...(client_id !== 'bank' && { client_secret: `${client_id}-secret` }),
          username: USER.email,
          password: USER.password,
          scope,
          ...(audience !== undefined && { audience }),
        },
        certificate,
      );
    const userinfo = (token: string, certificate?: TestCertificate) =>
      createAgent(server).get('/userinfo', { authorization: `Bearer ${token}`, ...by(certificate) });
    const refresh = (client_id: string, refresh_token: string, certificate?: TestCertificate) =>
      ask(
        {
          grant_type: 'refresh_token',
          client_id,
          ...(['robot', 'bound-only'].includes(client_id) && { client_secret: `${client_id}-secret` }),
          refresh_token,
        },
        certificate,
      );

    for (const [what, client, audience] of [
      ['a JWT', 'robot', ALLOWED],
      ['opaque', 'bound-only', undefined],
    ] as const) {
      it(`are accepted at /userinfo only with their certificate: ${what}`, async () => {
        const { body } = await password(client, audience, own);
        const token = String(body.access_token);
        expect(token.split('.').length).to.equal(audience === undefined ? 1 : 3);
        expect((await userinfo(token, own)).status).to.equal(200);
        for (const certificate of [undefined, other, expired]) {
          const answer = await userinfo(token, certificate);
          expect(answer.status).to.equal(401);
          expect(answer.headers['www-authenticate']).to.contain('invalid_token');
        }
        const inQuery = await createAgent(server).get(`/userinfo?access_token=${token}`, by(own));
        expect(inQuery.status).to.equal(401);
        // Forged: the key is that of no edge.
        const forged = { ...by(own), 'cname-api-key': 'nobody-has-this-key-of-an-edge' };
        expect(
          (await createAgent(server).get('/userinfo', { authorization: `Bearer ${token}`, ...forged }))
            .status,
        ).to.equal(401);
      });
    }

    it('are bound to the certificate of the refresh', async () => {
      const { body } = await password('robot', REQUIRED, own);
      const again = await refresh('robot', body.refresh_token, other);
      expect(cnfOf(again.body.access_token)).to.deep.equal({ 'x5t#S256': other.thumbprint });
    });

    it('are not refreshed without one, which does not use up the refresh token', async () => {
      const { body } = await password('robot', REQUIRED, own);
      expect((await refresh('robot', body.refresh_token)).status).to.equal(400);
      expect((await refresh('robot', body.refresh_token, own)).status).to.equal(200);
    });

    it('are refused before a password is tried', async () => {
      const { status, body } = await ask({
        grant_type: 'password',
        client_id: 'robot',
        client_secret: 'robot-secret',
        username: USER.email,
        password: 'wrong',
        audience: REQUIRED,
      });
      expect({ status, error: body.error }).to.deep.equal({ status: 400, error: 'invalid_request' });
    });
  });

  describe('of a public client', () => {
    const login = async (client_id: string, audience: string | undefined, certificate?: TestCertificate) => {
      const agent = createAgent(server);
      const { verifier, challenge } = pkce();
      const request = spaRequest(challenge, {
        client_id,
        scope: 'openid offline_access read',
        ...(audience !== undefined && { audience }),
      });
      const { code = '' } = responseOf(await logIn(agent, server, request));
      return ask(
        {
          grant_type: 'authorization_code',
          client_id,
          code,
          code_verifier: verifier,
          redirect_uri: SPA_CALLBACK,
        },
        certificate,
      );
    };
    const refresh = (refresh_token: string, certificate?: TestCertificate, client_id = 'spa') =>
      ask({ grant_type: 'refresh_token', client_id, refresh_token }, certificate);

    it('are refreshed only with the same certificate (RFC 8705 §4), rotation included', async () => {
      const { body } = await login('spa', REQUIRED, own);
      expect(cnfOf(body.access_token)).to.deep.equal(bound());
      for (const certificate of [undefined, other, expired])
        expect((await refresh(body.refresh_token, certificate)).status).to.be.oneOf([400, 401]);
      const second = await refresh(body.refresh_token, own);
      expect(second.status).to.equal(200);
      expect(cnfOf(second.body.access_token)).to.deep.equal(bound());
      expect((await refresh(second.body.refresh_token, other)).status).to.equal(400);
      expect((await refresh(second.body.refresh_token, own)).status).to.equal(200);
    });

    it('are not issued for a code without a certificate', async () => {
      expect((await login('spa', REQUIRED)).status).to.equal(400);
      expect((await login('bound-spa', undefined)).status).to.equal(400);
      expect((await login('bound-spa', undefined, own)).status).to.equal(200);
    });

    it("are not issued at /authorize, where a browser's certificate would prove nothing", async () => {
      const agent = createAgent(server);
      const answer = await logIn(
        agent,
        server,
        spaRequest(pkce().challenge, {
          response_type: 'token id_token',
          code_challenge: undefined,
          code_challenge_method: undefined,
          audience: REQUIRED,
        }),
      );
      const response = responseOf(answer);
      expect(response).to.have.property('error', 'invalid_request');
      expect(response).not.to.have.property('access_token');
    });
  });
});
