import assert from 'node:assert/strict';
import { once } from 'node:events';
import tls from 'node:tls';
import { startGatehouse } from 'gatehouse/testing';
import { createApi } from '../api.js';

const AUDIENCE = 'https://api.example.test/';

describe('the API of notes', () => {
  let gatehouse;
  let server;
  before(async () => {
    gatehouse = await startGatehouse({ tenant: 'config/tenant.yaml' });
    // This process trusts its certificate from now on.
    tls.setDefaultCACertificates([...tls.getCACertificates('default'), gatehouse.ca]);
    server = createApi({ issuer: gatehouse.issuer, audience: AUDIENCE }).listen(0, 'localhost');
    await once(server, 'listening');
  });
  after(async () => {
    server?.close();
    await gatehouse?.stop();
  });
  // Each test begins with the state of the tenant file.
  beforeEach(() => gatehouse.reset());

  /** Returns a new user's access token. */
  const tokenOf = async (email, more = {}) => {
    const user = await gatehouse.users.create({ email, password: 'A-good-Passw0rd' });
    return gatehouse.tokenFor({ user, audience: AUDIENCE, scope: 'read:notes write:notes', ...more });
  };
  const call = (token, init = {}) =>
    fetch(`http://localhost:${server.address().port}/notes`, {
      ...init,
      headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    });
  const write = (token, text) => call(token, { method: 'POST', body: JSON.stringify({ text }) });

  it('keeps the notes of each user', async () => {
    const [ada, grace] = [await tokenOf('ada@example.test'), await tokenOf('grace@example.test')];
    assert.equal((await write(ada, 'Engine')).status, 201);
    assert.equal((await write(grace, 'Compiler')).status, 201);
    assert.deepEqual(await (await call(ada)).json(), ['Engine']);
    assert.deepEqual(await (await call(grace)).json(), ['Compiler']);
  });

  it('requires a token', async () => {
    assert.equal((await call()).status, 401);
  });

  it('requires the scope of the route', async () => {
    const token = await tokenOf('ada@example.test', { scope: 'read:notes' });
    assert.equal((await call(token)).status, 200);
    assert.equal((await write(token, 'Engine')).status, 403);
  });

  it('refuses tokens for others, and tokens that have expired', async () => {
    const aud = 'https://elsewhere.example.test/';
    assert.equal((await call(await tokenOf('ada@example.test', { claims: { aud } }))).status, 401);
    const token = await tokenOf('grace@example.test');
    gatehouse.clock.advance(25 * 60 * 60 * 1000);
    assert.equal((await call(token)).status, 401);
  });
});
