// Client authentication at the endpoints of the MFA API. The bearer token in `Authorization` is the user's and does
// not authenticate the application, so a client secret or assertion in the body is verified separately.
import { createPrivateKey, generateKeyPairSync, randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { SignJWT } from 'jose';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';
import { callsOf, MFA_GRANTS, tenant } from './tenant.ts';

const keys = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const stranger = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ASSERTION_TYPE = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

const withKeys = tenantWith(
  {
    change: { spa: (client) => ({ grant_types: [...client.grant_types, 'password', ...MFA_GRANTS] }) },
    add: {
      clients: [
        {
          client_id: 'key-client',
          name: 'Private key',
          app_type: 'regular_web',
          callbacks: [],
          grant_types: ['password', ...MFA_GRANTS],
          client_authentication_methods: {
            private_key_jwt: { credentials: [{ alg: 'RS256', pem: keys.publicKey }] },
          },
        },
      ],
    },
    enable: ['key-client'],
  },
  tenant,
);

describe('client authentication beside a bearer token', () => {
  let server: TestServer;
  let calls: ReturnType<typeof callsOf>;
  let people = 0;
  before(async () => {
    server = await startServer({ tenant: withKeys });
    calls = callsOf(server);
  });
  after(() => server.stop());

  const assertion = (over: { key?: Parameters<SignJWT['sign']>[0]; aud?: string; sub?: string } = {}) => {
    const { key = createPrivateKey(keys.privateKey), aud = server.issuer, sub = 'key-client' } = over;
    return new SignJWT({ iss: sub, sub, aud, jti: randomUUID(), exp: Math.floor(Date.now() / 1000) + 60 })
      .setProtectedHeader({ alg: 'RS256' })
      .sign(key);
  };
  const proof = async (over?: Parameters<typeof assertion>[0]) => ({
    client_assertion: await assertion(over),
    client_assertion_type: ASSERTION_TYPE,
  });
  const mfaToken = async (clientId: string, fields: Record<string, unknown> = {}): Promise<string> => {
    const answer = await calls.login(`mfa-${people++}@example.test`, fields, clientId);
    expect(answer.json().error, answer.text).to.equal('mfa_required');
    return answer.json().mfa_token;
  };
  const ways = ['/mfa/associate', '/mfa/challenge'] as const;
  /**
   * What each endpoint answers once the application is authenticated: the user has no authenticator to be
   * challenged with.
   */
  const done = { '/mfa/associate': 200, '/mfa/challenge': 401 } as const;
  const ask = async (path: (typeof ways)[number], token: string, fields: Record<string, unknown>) => {
    const answer = await calls.agent.request(path, {
      json: {
        ...(path === '/mfa/associate' ? { authenticator_types: ['otp'] } : { mfa_token: token }),
        ...fields,
      },
      headers: { authorization: `Bearer ${token}` },
    });
    return { status: answer.status, error: answer.json().error, answer };
  };
  const refused = { status: 401, error: 'invalid_client' };

  for (const path of ways) {
    const passes = ({ status, error }: { status: number; error?: string }) => {
      expect({ status, error }).to.deep.equal({
        status: done[path],
        error: path === '/mfa/challenge' ? 'association_required' : undefined,
      });
    };

    it(`${path} accepts the right secret in the body`, async () => {
      const token = await mfaToken('web');
      passes(await ask(path, token, { client_id: 'web', client_secret: 'web-secret' }));
    });

    it(`${path} rejects a wrong secret, an empty one and that of another application`, async () => {
      const token = await mfaToken('web');
      for (const client_secret of ['wrong', '', 'leeway-secret']) {
        expect(await ask(path, token, { client_id: 'web', client_secret }), client_secret).to.include(
          refused,
        );
      }
    });

    it(`${path} accepts a client assertion (private_key_jwt) once`, async () => {
      const token = await mfaToken('key-client', await proof());
      const sent = { client_id: 'key-client', ...(await proof()) };
      passes(await ask(path, token, sent));
      expect(await ask(path, token, sent), 'again').to.include(refused);
      passes(await ask(path, token, await proof()));
    });

    it(`${path} rejects an assertion by another key, for another server, or of another application`, async () => {
      const token = await mfaToken('key-client', await proof());
      for (const over of [{ key: stranger.privateKey }, { aud: 'https://elsewhere.example/' }]) {
        const sent = { client_id: 'key-client', ...(await proof(over)) };
        expect(await ask(path, token, sent)).to.include(refused);
      }
      const foreign = await ask(path, token, { client_id: 'key-client', ...(await proof({ sub: 'web' })) });
      expect(foreign.status).to.be.oneOf([400, 401]);
      const mixed = { client_id: 'key-client', ...(await proof()), client_secret: 'web-secret' };
      expect(await ask(path, token, mixed), 'two mechanisms').to.include({ status: 400 });
    });

    it(`${path} sends no Basic challenge when a bearer token was sent`, async () => {
      const token = await mfaToken('web');
      const { answer } = await ask(path, token, { client_id: 'web', client_secret: 'wrong' });
      expect(answer.headers).not.to.have.property('www-authenticate');
    });

    it(`${path} accepts a public application by its client_id`, async () => {
      passes(await ask(path, await mfaToken('spa'), { client_id: 'spa' }));
    });

    it(`${path} rejects the token of another application, even with valid client authentication`, async () => {
      const token = await mfaToken('web');
      const own = { client_id: 'leeway', client_secret: 'leeway-secret' };
      expect(await ask(path, token, own)).to.include({ status: 401, error: 'invalid_grant' });
    });
  }

  it('/mfa/challenge does not accept the bearer token in place of a client secret', async () => {
    const token = await mfaToken('web');
    expect(await ask('/mfa/challenge', token, { client_id: 'web' })).to.include(refused);
  });
});
