// Applications that are registered by the document at their client_id.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { clientSchema } from '../../src/records/clients/clients.ts';
import { createAgent } from '../support/agent.ts';
import { type ClientKeyPair, clientKey } from '../support/client-key.ts';
import type { TestServer } from '../support/server.ts';
import { callsWith, type ManagementCall, managementToken, startManaged } from './support.ts';

const CALLBACK = 'https://wiki.example.test/callback';

describe('applications with a document (/clients/cimd)', () => {
  let server: TestServer;
  let call: ManagementCall;
  let documents: Server;
  let origin: string;
  /** What is served at a path: a document, or a status with headers. */
  const served = new Map<string, unknown>();
  let asked = 0;

  before(async () => {
    documents = createServer((request, response) => {
      asked += 1;
      const found = served.get(request.url ?? '');
      if (typeof found === 'string') response.writeHead(302, { location: found }).end();
      else if (found === undefined) response.writeHead(404).end();
      else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found));
    }).listen(0, '127.0.0.1');
    await once(documents, 'listening');
    origin = `http://127.0.0.1:${(documents.address() as AddressInfo).port}`;
    server = await startManaged();
    call = callsWith(server, await managementToken(server));
  });
  after(async () => {
    documents.close();
    await server.stop();
  });

  const document = (path: string, more: object = {}) => {
    const client_id = `${origin}${path}`;
    served.set(path, { client_id, client_name: 'Wiki', redirect_uris: [CALLBACK], ...more });
    return client_id;
  };
  const ask = async (what: 'preview' | 'register', external_client_id: string) => {
    const answer = await call('POST', `/clients/cimd/${what}`, { external_client_id });
    return { status: answer.status, body: answer.json() };
  };
  const authorize = (client_id: string, redirect_uri: string) =>
    createAgent(server).request(
      `/authorize?${new URLSearchParams({
        client_id,
        redirect_uri,
        response_type: 'code',
        scope: 'openid',
        code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        code_challenge_method: 'S256',
      })}`,
    );

  it('are third parties under the URL of the document, to which they can be brought up to date', async () => {
    const url = document('/client.json', { client_uri: 'https://wiki.example.test/' });
    const preview = await ask('preview', url);
    expect(preview.body).not.to.have.property('client_id');
    expect(preview.body.validation).to.deep.equal({
      valid: true,
      violations: [],
      warnings: ['Ignoring unsupported properties: client_uri.'],
    });
    expect((await authorize(url, CALLBACK)).status).to.equal(400);
    const registered = await ask('register', url);
    expect(registered.status, JSON.stringify(registered.body)).to.equal(200);
    expect(registered.body.client_id).to.equal(url);
    const path = `/clients/${encodeURIComponent(url)}`;
    expect((await call('GET', path)).json()).to.deep.include({
      name: 'Wiki',
      callbacks: [CALLBACK],
      is_first_party: false,
      token_endpoint_auth_method: 'none',
      external_client_id: url,
      external_metadata_type: 'cimd',
    });
    const listed = await call('GET', `/clients?external_client_id=${encodeURIComponent(url)}`);
    expect((listed.json() as unknown as object[]).length).to.equal(1);
    expect((await authorize(url, CALLBACK)).status).to.equal(302);
    expect((await authorize(url, 'https://thief.example.test/')).status).to.equal(400);
    await call('PATCH', path, { grant_types: ['authorization_code', 'refresh_token'], description: 'Kept' });
    document('/client.json', { client_name: 'Wiki 2', redirect_uris: [`${CALLBACK}2`] });
    expect((await ask('register', url)).status).to.equal(200);
    expect((await call('GET', path)).json()).to.deep.include({
      name: 'Wiki 2',
      description: 'Kept',
      callbacks: [`${CALLBACK}2`],
      grant_types: ['authorization_code', 'refresh_token'],
    });
    expect((await ask('preview', url)).body.client_id).to.equal(url);
  });

  it('keep the way to authenticate that an administrator has set', async () => {
    const url = document('/confidential.json');
    expect((await ask('register', url)).status).to.equal(200);
    const path = `/clients/${encodeURIComponent(url)}`;
    const set = { token_endpoint_auth_method: 'client_secret_post', app_type: 'regular_web' };
    expect((await call('PATCH', path, set)).status).to.equal(200);
    expect((await ask('register', url)).status).to.equal(200);
    expect((await call('GET', path)).json()).to.include(set);
  });

  it('authenticate with the keys of the document, which replace one another', async () => {
    const [first, second] = [await clientKey('ES256'), await clientKey('EdDSA')];
    const keyed = ({ alg, credential: { kid, jwk } }: ClientKeyPair) => ({
      token_endpoint_auth_method: 'private_key_jwt',
      jwks: {
        keys: [
          { ...jwk, kid, alg, use: 'sig' },
          { kty: 'EC', use: 'enc' },
        ],
      },
    });
    const url = document('/keyed.json', keyed(first));
    const preview = await ask('preview', url);
    expect(
      preview.body.mapped_fields.client_authentication_methods.private_key_jwt.credentials[0],
    ).to.include({
      kid: first.credential.kid,
      alg: 'ES256',
    });
    const shown = async () => (await call('GET', `/clients/${encodeURIComponent(url)}`)).json();
    const stored = async () => {
      const client = await server.store.collection('clients').get(url);
      return client?.client_authentication_methods?.private_key_jwt?.credentials.map(({ kid }) => kid);
    };
    for (const key of [first, second]) {
      document('/keyed.json', keyed(key));
      const registered = await ask('register', url);
      expect(registered.status, JSON.stringify(registered.body)).to.equal(200);
      expect(await stored()).to.deep.equal([key.credential.kid]);
      expect(await shown()).not.to.have.property('token_endpoint_auth_method', 'none');
    }
    // A document can not make it public.
    document('/keyed.json');
    expect((await ask('register', url)).status).to.equal(200);
    expect(await stored()).to.deep.equal([second.credential.kid]);
  });

  it('are not registered by a document of another client, with a secret, or without callbacks that browsers may be sent to', async () => {
    const faults: [object, RegExp][] = [
      [{ client_id: `${origin}/other.json` }, /client_id: must be the URL/],
      [{ client_secret: 'secret' }, /client_secret/],
      [{ redirect_uris: [] }, /redirect_uris/],
      ...[
        'javascript:alert(1)',
        'data:text/html,x',
        'http://wiki.example.test/callback',
        'https://*.example.test/callback',
        'https://wiki.example.test/callback#here',
        'wiki:callback',
      ].map((one): [object, RegExp] => [
        { redirect_uris: [CALLBACK, one] },
        /redirect_uris.1: must be https/,
      ]),
      [{ logo_uri: 'javascript:alert(1)' }, /logo_uri: must be an https URL/],
      [{ token_endpoint_auth_method: 'client_secret_post' }, /must be none or private_key_jwt/],
      [{ token_endpoint_auth_method: 'private_key_jwt' }, /needs usable public keys/],
      [{ token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [] } }, /needs usable public keys/],
      [
        { token_endpoint_auth_method: 'private_key_jwt', jwks: { keys: [{ kty: 'oct', k: 'AAAA' }] } },
        /needs usable public keys/,
      ],
      [
        { token_endpoint_auth_method: 'private_key_jwt', jwks_uri: 'http://127.0.0.1/' },
        /jwks_uri: must be an https URL/,
      ],
      [{ grant_types: ['client_credentials'] }, /grant_types/],
    ];
    for (const [more, message] of faults) {
      const url = document('/faulty.json', more);
      const { status, body } = await ask('register', url);
      expect(status, String(message)).to.equal(400);
      expect(body.message).to.match(message);
      expect((await ask('preview', url)).body.validation).to.include({ valid: false });
    }
  });

  it('are not looked for at a redirect’s target, nor at a URL that identifies no document', async () => {
    document('/target.json');
    served.set('/moved.json', `${origin}/target.json`);
    expect((await ask('register', `${origin}/moved.json`)).body.message).to.match(/answered 302/);
    const before = asked;
    const urls = [origin, `${origin}/`, `${origin}/a/../target.json`, `${origin}/target.json#a`, 'ftp://a/b'];
    for (const url of [...urls, `${origin.replace('//', '//user:secret@')}/target.json`])
      expect((await ask('register', url)).status, url).to.equal(400);
    expect(asked).to.equal(before);
  });

  it('do not replace a client that has no document', async () => {
    const url = document('/taken.json');
    const client = clientSchema.parse({ client_id: url, name: 'Taken', app_type: 'spa' });
    await server.store.collection('clients').insert({ ...client, id: url, grant_types: [] });
    expect((await ask('register', url)).status).to.equal(409);
  });
});
