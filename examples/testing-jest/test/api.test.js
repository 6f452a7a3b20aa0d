import { once } from 'node:events';
import tls from 'node:tls';
import { startGatehouse } from 'gatehouse/testing';
import { createApi } from '../api.js';

const AUDIENCE = 'https://api.example.test/';

describe('the API of notes', () => {
  let gatehouse;
  let server;
  beforeAll(async () => {
    gatehouse = await startGatehouse({ tenant: 'config/tenant.yaml' });
    // This process trusts its certificate from now on.
    tls.setDefaultCACertificates([...tls.getCACertificates('default'), gatehouse.ca]);
    server = createApi({ issuer: gatehouse.issuer, audience: AUDIENCE }).listen(0, 'localhost');
    await once(server, 'listening');
    // Milliseconds, on a busy machine.
  }, 60_000);
  afterAll(async () => {
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
    expect((await write(ada, 'Engine')).status).toBe(201);
    expect((await write(grace, 'Compiler')).status).toBe(201);
    expect(await (await call(ada)).json()).toEqual(['Engine']);
    expect(await (await call(grace)).json()).toEqual(['Compiler']);
  });

  it('requires a token', async () => {
    expect((await call()).status).toBe(401);
  });

  it('requires the scope of the route', async () => {
    const token = await tokenOf('ada@example.test', { scope: 'read:notes' });
    expect((await call(token)).status).toBe(200);
    expect((await write(token, 'Engine')).status).toBe(403);
  });

  it('refuses tokens for others, and tokens that have expired', async () => {
    const aud = 'https://elsewhere.example.test/';
    expect((await call(await tokenOf('ada@example.test', { claims: { aud } }))).status).toBe(401);
    const token = await tokenOf('grace@example.test');
    gatehouse.clock.advance(25 * 60 * 60 * 1000);
    expect((await call(token)).status).toBe(401);
  });
});
