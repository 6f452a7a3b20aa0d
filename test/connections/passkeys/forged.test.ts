// Invalid responses of a passkey: each deviation from a valid one makes a login and a sign-up fail.
import { expect } from 'chai';
import { createAgent } from '../../support/agent.ts';
import { tenant, token } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';
import { type Said, softwareKey } from '../../support/software-key.ts';

const GRANT = 'urn:okta:params:oauth:grant-type:webauthn';
const ORIGIN = 'https://app.example.test';

/** Deviations of the response, by name. */
const FORGED: Record<string, Said> = {
  'of another origin': { origin: 'https://evil.example.test' },
  'of an origin that begins with ours': { origin: `${ORIGIN}.evil.example.test` },
  'of an origin without TLS': { origin: 'http://localhost' },
  'for another RP ID': { rpId: 'evil.example.test' },
  'for the RP ID of the page itself': { rpId: 'app.example.test' },
  'for an unknown challenge': { challenge: Buffer.alloc(32, 7).toString('base64url') },
  'without user presence': { flags: 4 },
  'without user verification': { flags: 1 },
  'without presence and verification': { flags: 0 },
  'in a frame of another origin': { crossOrigin: true },
  'in a frame below a page of another origin': { topOrigin: 'https://evil.example.test' },
  'backed up, but not backup eligible': { flags: 5 | 16 },
};

describe('a passkey response', () => {
  let server: TestServer;
  let people = 0;
  before(async () => {
    const client = (client_id: string) => ({
      client_id,
      name: client_id,
      app_type: 'spa',
      token_endpoint_auth_method: 'none',
      grant_types: [GRANT],
      web_origins: [ORIGIN],
    });
    server = await startServer({
      tenant: {
        ...tenant,
        clients: [...tenant.clients, client('app'), client('other')],
        databases: [
          {
            name: 'keys',
            enabled_clients: ['app', 'other'],
            options: { authentication_methods: { passkey: { enabled: true } } },
          },
          ...tenant.databases,
        ],
      },
    });
  });
  after(() => server.stop());
  // Refills the rate limits.
  beforeEach(() => server.tick(60_000));

  interface Begun {
    auth_session: string;
    authn_params_public_key: never;
  }
  const begin = async (path: string, more: object = {}, client_id = 'app') => {
    const json = { client_id, realm: 'keys', ...more };
    const answer = await createAgent(server).request(path, { json });
    expect(answer.status, answer.text).to.equal(200);
    return answer.json() as Begun;
  };
  const register = (email: string) => begin('/passkey/register', { user_profile: { email } });
  const challenge = (client_id?: string) => begin('/passkey/challenge', {}, client_id);
  const exchange = (auth_session: string, authn_response: object, client_id = 'app') =>
    token(createAgent(server), {
      grant_type: GRANT,
      client_id,
      auth_session,
      authn_response: JSON.stringify(authn_response),
    });
  const someone = () => `forged-${people++}@example.test`;
  /** Signs up a user whose passkey has the counter five. */
  const signUp = async (alg?: Parameters<typeof softwareKey>[0]) => {
    const key = softwareKey(alg);
    const { auth_session, authn_params_public_key: options } = await register(someone());
    const answer = await exchange(auth_session, key.create(options, ORIGIN, { count: 5 }));
    expect(answer.status, answer.text).to.equal(200);
    return key;
  };
  const logIn = async (key: ReturnType<typeof softwareKey>, said: Said) => {
    const { auth_session, authn_params_public_key: options } = await challenge();
    return exchange(auth_session, key.get(options, ORIGIN, said));
  };

  for (const [name, said] of Object.entries(FORGED)) {
    it(`is rejected at a login: ${name}`, async () => {
      const key = await signUp();
      expect((await logIn(key, { count: 6, ...said })).json().error).to.equal('invalid_grant');
      // The same key with a valid response succeeds, so only the deviation was the reason.
      expect((await logIn(key, { count: 6 })).status).to.equal(200);
    });

    it(`is rejected at a sign-up: ${name}`, async () => {
      const email = someone();
      const { auth_session, authn_params_public_key: options } = await register(email);
      const answer = await exchange(auth_session, softwareKey().create(options, ORIGIN, said));
      expect(answer.json().error).to.equal('invalid_grant');
      expect(await server.users.withEmail(email)).to.deep.equal([]);
    });
  }

  for (const alg of ['ES256', 'EdDSA', 'RS256'] as const)
    it(`is accepted with an ${alg} key`, async () => {
      const key = await signUp(alg);
      expect((await logIn(key, { count: 6 })).status).to.equal(200);
    });

  it('is rejected at a sign-up with an algorithm that was not offered', async () => {
    const email = someone();
    const { auth_session, authn_params_public_key: options } = await register(email);
    expect(
      (options as { pubKeyCredParams: { alg: number }[] }).pubKeyCredParams.map(({ alg }) => alg),
    ).to.deep.equal([-7, -8, -257]);
    const answer = await exchange(auth_session, softwareKey('ES384').create(options, ORIGIN));
    expect(answer.json().error).to.equal('invalid_grant');
    expect(await server.users.withEmail(email)).to.deep.equal([]);
  });

  it('of a registration is rejected at a login', async () => {
    const key = await signUp();
    expect((await logIn(key, { count: 6, type: 'webauthn.create' })).json().error).to.equal('invalid_grant');
  });

  it('of a login is rejected at a registration', async () => {
    const { auth_session, authn_params_public_key: options } = await register(someone());
    const answered = softwareKey().create(options, ORIGIN, { type: 'webauthn.get' });
    expect((await exchange(auth_session, answered)).json().error).to.equal('invalid_grant');
  });

  it('is rejected if the key is backup eligible now and was not before', async () => {
    const key = await signUp();
    expect((await logIn(key, { count: 6, flags: 5 | 8 })).json().error).to.equal('invalid_grant');
    expect((await logIn(key, { count: 6, flags: 5 | 8 | 16 })).json().error).to.equal('invalid_grant');
    expect((await logIn(key, { count: 6, crossOrigin: false })).status).to.equal(200);
  });

  it('must contain the user handle of its key', async () => {
    const [key, other] = [await signUp(), await signUp()];
    const { authn_params_public_key: options } = await challenge();
    const { response } = other.get(options, ORIGIN) as { response: { userHandle: string } };
    for (const userHandle of [response.userHandle, ''])
      expect((await logIn(key, { count: 6, userHandle })).json().error).to.equal('invalid_grant');
    expect((await logIn(key, { count: 6 })).status).to.equal(200);
  });

  it('registers a key for one account only, and its transports are stored', async () => {
    const key = softwareKey();
    const first = await register(someone());
    const answered = key.create(first.authn_params_public_key, ORIGIN) as { response: object };
    const reached = { ...answered, response: { ...answered.response, transports: ['internal', 'hybrid'] } };
    expect((await exchange(first.auth_session, reached)).status).to.equal(200);
    const email = someone();
    const second = await register(email);
    const again = await exchange(second.auth_session, key.create(second.authn_params_public_key, ORIGIN));
    expect(again.json().error).to.equal('invalid_request');
    expect(await server.users.withEmail(email)).to.deep.equal([]);
    const { records } = await server.store.collection('passkeys').list({ limit: 1000 });
    expect(records.filter(({ transports }) => transports.join() === 'internal,hybrid')).to.have.length(1);
  });

  it('is rejected if the counter does not increase, as the key may be a copy', async () => {
    const key = await signUp();
    expect((await logIn(key, { count: 9 })).status).to.equal(200);
    for (const count of [9, 8, 5, 1, 0])
      expect((await logIn(key, { count })).json().error, `${count}`).to.equal('invalid_grant');
    expect((await logIn(key, { count: 10 })).status).to.equal(200);
  });

  it('is accepted once, and only for the session of its challenge', async () => {
    const key = await signUp();
    const [one, two] = [await challenge(), await challenge()];
    const answer = key.get(one.authn_params_public_key, ORIGIN, { count: 6 });
    expect((await exchange(two.auth_session, answer)).json().error).to.equal('invalid_grant');
    expect((await exchange(one.auth_session, answer)).status).to.equal(200);
    expect((await exchange(one.auth_session, answer)).json().error).to.equal('invalid_grant');
    const later = await challenge();
    expect((await exchange(later.auth_session, answer)).json().error).to.equal('invalid_grant');
  });

  it('is rejected for another application, and after five minutes', async () => {
    const key = await signUp();
    const theirs = await challenge('other');
    const answer = key.get(theirs.authn_params_public_key, ORIGIN, { count: 6 });
    expect((await exchange(theirs.auth_session, answer)).json().error).to.equal('invalid_grant');
    const late = await challenge();
    server.tick(301_000);
    const again = key.get(late.authn_params_public_key, ORIGIN, { count: 7 });
    expect((await exchange(late.auth_session, again)).json().error).to.equal('invalid_grant');
  });
});
