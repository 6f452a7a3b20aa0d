// What the tests of applications start: the server in their own process.
import { expect } from 'chai';
import { createRemoteJWKSet, customFetch, errors, jwtVerify } from 'jose';
import { startGatehouse, type TestGatehouse } from '../../src/testing/index.ts';
import { createAgent } from '../support/agent.ts';
import { API, tenant } from '../support/flows.ts';

const withEmail = {
  ...tenant,
  connections: [{ name: 'email', strategy: 'email', enabled_clients: ['web'] }],
};

describe('the server in the tests of applications', () => {
  let server: TestGatehouse;

  before(async () => {
    server = await startGatehouse({ tenant: withEmail });
  });
  after(() => server.stop());

  const post = (path: string, json: object) => createAgent(server).request(path, { method: 'POST', json });
  const passwordToken = (username: string, password: string) =>
    post('/oauth/token', {
      grant_type: 'password',
      client_id: 'web',
      client_secret: 'web-secret',
      username,
      password,
    });

  /** Verifies as an API would: with the published keys. */
  const verify = async (token: string) => {
    const agent = createAgent(server);
    const keys = createRemoteJWKSet(new URL(`${server.url}/.well-known/jwks.json`), {
      [customFetch]: async () => new Response((await agent.get('/.well-known/jwks.json')).text),
    });
    return jwtVerify(token, keys, { issuer: server.issuer, audience: API });
  };

  it('creates users who can log in', async () => {
    const made = await server.users.create({ email: 'eve@example.test', password: 'A-good-Passw0rd' });
    expect(made.id).to.match(/^auth0\|/);
    const { status } = await passwordToken('eve@example.test', 'A-good-Passw0rd');
    expect(status).to.equal(200);
    const again = server.users.create({ email: 'eve@example.test', password: 'A-good-Passw0rd' });
    expect(String(await again.catch((thrown: unknown) => thrown))).to.contain('is taken');
  });

  it('returns a mail as soon as it was sent', async () => {
    await post('/passwordless/start', {
      client_id: 'web',
      client_secret: 'web-secret',
      connection: 'email',
      email: 'mail@example.test',
      send: 'code',
    });
    const message = await server.inbox.latest('mail@example.test');
    expect(message.code).to.match(/^\d{6}$/);
    const none = await server.inbox.latest('nobody@example.test', 20).catch((thrown: unknown) => thrown);
    expect(String(none)).to.contain('no message to nobody@example.test');
  });

  it('issues tokens that an API accepts, until they expire', async () => {
    const user = await server.users.create({ email: 'api@example.test', password: 'A-good-Passw0rd' });
    const token = await server.tokenFor({ user, audience: API, clientId: 'spa', scope: 'read:things' });
    const { payload } = await verify(token);
    expect(payload).to.include({ sub: user.id, azp: 'spa', scope: 'read:things' });
    server.clock.advance(2 * 86_400_000);
    expect(await verify(token).catch((thrown: unknown) => thrown)).to.be.instanceOf(errors.JWTExpired);
  });

  it('issues tokens with other claims, and none for unknown clients and APIs', async () => {
    const token = await server.tokenFor({
      user: { id: 'x' },
      audience: API,
      claims: { iss: 'https://other/' },
    });
    expect(await verify(token).catch((thrown: unknown) => thrown)).to.be.instanceOf(
      errors.JWTClaimValidationFailed,
    );
    const unknown = await server
      .tokenFor({ user: { id: 'x' }, audience: 'https://unknown/' })
      .catch((thrown: unknown) => thrown);
    expect(String(unknown)).to.contain('there is no API');
  });

  it('has its initial state again after a reset', async () => {
    await server.users.create({ email: 'gone@example.test', password: 'A-good-Passw0rd' });
    await server.reset();
    expect((await passwordToken('gone@example.test', 'A-good-Passw0rd')).status).to.equal(403);
    expect(await server.inbox.all()).to.deep.equal([]);
    await server.users.create({ email: 'gone@example.test', password: 'A-good-Passw0rd' });
    expect((await passwordToken('gone@example.test', 'A-good-Passw0rd')).status).to.equal(200);
  });

  it('runs beside another, each with its own users', async () => {
    const other = await startGatehouse({ tenant: withEmail });
    try {
      await other.users.create({ email: 'theirs@example.test', password: 'A-good-Passw0rd' });
      expect((await passwordToken('theirs@example.test', 'A-good-Passw0rd')).status).to.equal(403);
    } finally {
      await other.stop();
    }
  });

  it('names every fault of an invalid tenant, and leaves nothing behind', async () => {
    const started = await startGatehouse({ tenant: { clients: [{ name: 3 }] } }).catch(
      (thrown: unknown) => thrown,
    );
    expect(JSON.stringify(started)).to.contain('clients');
  });
});
