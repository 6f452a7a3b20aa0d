// An access token from a Gatehouse that runs in a container of this test.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import tls from 'node:tls';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { type Gatehouse, startGatehouse } from './gatehouse.ts';

const API = 'https://api.example.test/';
let gatehouse: Gatehouse;

before(async () => {
  gatehouse = await startGatehouse(new URL('config/tenant.yaml', import.meta.url).pathname);
  // From here on `fetch` trusts its certificate.
  tls.setDefaultCACertificates([...tls.getCACertificates(), gatehouse.ca]);
});
after(() => gatehouse?.stop());

const askForToken = (client_secret: string) =>
  fetch(`${gatehouse.url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: 'machine',
      client_secret,
      audience: API,
    }),
  });

test('the application gets an access token for the API', async () => {
  const answer = await askForToken('machine-example-secret');
  assert.equal(answer.status, 200);
  const { access_token } = (await answer.json()) as { access_token: string };
  const keys = createRemoteJWKSet(new URL(`${gatehouse.url}/.well-known/jwks.json`));
  const { payload } = await jwtVerify(access_token, keys, { issuer: `${gatehouse.url}/`, audience: API });
  assert.equal(payload.scope, 'read:messages');
});

test('with a wrong secret it gets none', async () => {
  assert.equal((await askForToken('wrong')).status, 401);
});
