// Applications, connections and APIs of a tenant file that could not work, or not safely, are rejected before the
// server starts.
import { generateKeyPairSync, type JsonWebKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readTenant, TenantFault } from '../../src/tenant/load.ts';
import { createAgent } from '../support/agent.ts';
import { API, tenant, token } from '../support/flows.ts';
import { CLI, runToEnd } from '../support/process.ts';
import { startServer, type TestServer } from '../support/server.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const short = generateKeyPairSync('rsa', { modulusLength: 1024 });
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
const spki = { type: 'spki', format: 'pem' } as const;
const pkcs8 = { type: 'pkcs8', format: 'pem' } as const;
const jwkOf = (key: { export(options: { format: 'jwk' }): object }) => key.export({ format: 'jwk' });

const vapid = (() => {
  const [{ x = '', y = '', d }, other] = [p256, generateKeyPairSync('ec', { namedCurve: 'P-256' })].map(
    ({ privateKey }) => privateKey.export({ format: 'jwk' }),
  ) as [JsonWebKey, JsonWebKey];
  const point = [Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')];
  const public_key = Buffer.concat(point).toString('base64url');
  return {
    pair: { subject: 'mailto:a@b.test', public_key, private_key: String(d) },
    other: String(other.d),
  };
})();

function faultsOf(document: unknown): string[] {
  try {
    readTenant(document);
  } catch (thrown) {
    if (thrown instanceof TenantFault) return [...thrown.faults];
    throw thrown;
  }
  return [];
}

const client = (over: object) => ({ clients: [{ client_id: 'x', name: 'X', ...over }] });
const withKey = (credential: object) =>
  client({ client_authentication_methods: { private_key_jwt: { credentials: [credential] } } });
const hs256 = { jwt_configuration: { alg: 'HS256' } };
const api = (over: object) => ({ resourceServers: [{ name: 'A', identifier: 'a', ...over }] });
const mail = (options: unknown) => ({ connections: [{ name: 'email', strategy: 'email', options }] });
const users = (options: object) => ({ databases: [{ name: 'users', options }] });

const KEY = /^clients[.[]0\]?\.client_authentication_methods\.private_key_jwt\.credentials[.[]0\]?/;

describe('a tenant file is rejected, with the place and the cause, for', () => {
  const refused: [string, object, RegExp, RegExp][] = [
    [
      'a native application by private_key_jwt without a key',
      client({
        app_type: 'native',
        client_authentication_methods: { private_key_jwt: { credentials: [] } },
      }),
      /client_authentication_methods\.private_key_jwt\.credentials/,
      /would not authenticate/,
    ],
    ['a client_secret of one character', client({ client_secret: 'x' }), /client_secret/, /8 char/],
    ['a client_secret of seven characters', client({ client_secret: '1234567' }), /client_secret/, /8 char/],
    ...[
      'pässword-of-some-length',
      'tab\there-and-there',
      'line\nline-and-line',
      'emoji-🔑-emoji',
      '\u007f-----------',
    ].map((client_secret): [string, object, RegExp, RegExp] => [
      `the client_secret ${JSON.stringify(client_secret)}`,
      client({ client_secret }),
      /client_secret/,
      /ASCII/,
    ]),
    ...['ünder', 'a\nb', 'null\0'].map((client_id): [string, object, RegExp, RegExp] => [
      `the client_id ${JSON.stringify(client_id)}`,
      client({ client_id }),
      /client_id/,
      /ASCII/,
    ]),
    [
      'HS256 with a client_secret that is shorter than the hash',
      client({ client_secret: 's'.repeat(31), ...hs256 }),
      /client_secret/,
      /32 char.*HS256/,
    ],
    ...[{ app_type: 'spa' }, { app_type: 'native' }, { token_endpoint_auth_method: 'none' }].map(
      (over): [string, object, RegExp, RegExp] => [
        `our own member for HS256 at an application without a secret of its own: ${JSON.stringify(over)}`,
        client({ ...over, client_secret: 's'.repeat(64), id_token_signed_response_alg: 'HS256' }),
        /id_token_signed_response_alg/,
        /HS256/,
      ],
    ),
    [
      'HS256 for an application with a key and without a secret',
      { clients: [{ ...withKey({ pem: rsa.publicKey.export(spki) }).clients[0], ...hs256 }] },
      /client_secret/,
      /HS256/,
    ],
    ['a key that is neither PEM nor JWK', withKey({}), KEY, /either pem or jwk/],
    [
      'a key as both PEM and JWK',
      withKey({ pem: rsa.publicKey.export(spki), jwk: jwkOf(rsa.publicKey) }),
      KEY,
      /either pem or jwk/,
    ],
    [
      'a PEM with invalid content',
      withKey({ pem: '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----' }),
      KEY,
      /no public key/,
    ],
    ['a PEM without its header', withKey({ pem: 'hello' }), KEY, /no public key/],
    ['a PEM with a private key', withKey({ pem: rsa.privateKey.export(pkcs8) }), KEY, /private/],
    ['a JWK without kty', withKey({ jwk: { ...jwkOf(rsa.publicKey), kty: undefined } }), KEY, /kty/],
    ['a JWK with a kty that is a number', withKey({ jwk: { kty: 1 } }), KEY, /kty/],
    ['a JWK with invalid members', withKey({ jwk: { kty: 'RSA', n: '!', e: 5 } }), KEY, /no public key/],
    ['a private JWK', withKey({ jwk: jwkOf(rsa.privateKey) }), KEY, /private/],
    ['a private EC JWK', withKey({ alg: 'ES256', jwk: jwkOf(p256.privateKey) }), KEY, /private/],
    ['a symmetric JWK', withKey({ jwk: { kty: 'oct', k: 'c2VjcmV0' } }), KEY, /shared/],
    ['a JWK whose kid is not a string', withKey({ jwk: { ...jwkOf(rsa.publicKey), kid: 5 } }), KEY, /kid/],
    ['an RSA key of 1024 bits', withKey({ pem: short.publicKey.export(spki) }), KEY, /2048/],
    ['an EC key for RS256', withKey({ pem: p256.publicKey.export(spki) }), KEY, /RS256/],
    ['an RSA key for ES256', withKey({ alg: 'ES256', pem: rsa.publicKey.export(spki) }), KEY, /ES256/],
    [
      'a key on a curve other than P-256 for ES256',
      withKey({ alg: 'ES256', pem: p384.publicKey.export(spki) }),
      KEY,
      /P-256/,
    ],
    [
      'a key on a curve other than P-384 for ES384',
      withKey({ alg: 'ES384', jwk: jwkOf(p256.publicKey) }),
      KEY,
      /P-384/,
    ],
    ['an HS256 API without a secret', api({ signing_alg: 'HS256' }), /signing_secret/, /required/],
    [
      'an HS256 API with a secret that is shorter than the hash',
      api({ signing_alg: 'HS256', signing_secret: 's'.repeat(31) }),
      /signing_secret/,
      /32 bytes/,
    ],
    ['a scope with a space', api({ scopes: [{ value: 'read things' }] }), /scopes[.[]0/, /scope/],
    ['a scope with a quotation mark', api({ scopes: [{ value: 'a"b' }] }), /scopes[.[]0/, /scope/],
    ['an identifier with half of a surrogate pair', api({ identifier: 'a\ud800' }), /identifier/, /Unicode/],
    ...[60, 0, 3, 41, -6, 5.5, '6', 'six', []].map((length): [string, object, RegExp, RegExp] => [
      `codes of the length ${JSON.stringify(length)}`,
      mail({ totp: { length } }),
      /connections[.[]0\]?\.options\.totp\.length/,
      /./,
    ]),
    ...[-1, 0, 29, 86_401, 1.5, '300'].map((time_step): [string, object, RegExp, RegExp] => [
      `codes that are good for ${JSON.stringify(time_step)} seconds`,
      mail({ totp: { time_step } }),
      /connections[.[]0\]?\.options\.totp\.time_step/,
      /./,
    ]),
    ['totp that is a string', mail({ totp: 'yes' }), /options\.totp/, /./],
    ['disable_signup that is a string', mail({ disable_signup: 'no' }), /options\.disable_signup/, /./],
    ...['A'.repeat(43), vapid.other].map((private_key): [string, object, RegExp, RegExp] => [
      `web push keys that are no pair (${private_key.slice(0, 2)}…)`,
      { webPush: { ...vapid.pair, private_key } },
      /webPush\.private_key/,
      /public_key/,
    ]),
    [
      'usernames whose minimum length is above the maximum',
      users({ validation: { username: { min: 20, max: 10 } } }),
      /databases[.[]0\]?\.options\.validation\.username/,
      /max/,
    ],
    [
      'usernames whose minimum length is above the default maximum',
      users({ validation: { username: { min: 16 } } }),
      /databases[.[]0\]?\.options\.validation\.username/,
      /max/,
    ],
  ];
  for (const [what, file, place, cause] of refused) {
    it(what, () => {
      const faults = faultsOf(file);
      expect(faults).to.have.length(1);
      expect(faults[0]).to.match(place).and.match(cause);
      // A message about a secret does not contain the secret.
      expect(faults[0]).not.to.contain('BEGIN');
    });
  }
});

describe('a tenant file is accepted with', () => {
  const taken: [string, object][] = [
    [
      'a secret with every printable character',
      client({ client_secret: ' !"#$%&\'()*+,-./09:;<=>?@AZ[\\]^_`az{|}~' }),
    ],
    ['HS256 with a secret as long as the hash', client({ client_secret: 's'.repeat(32), ...hs256 })],
    ['HS256 with a generated secret', client(hs256)],
    ['an RSA key as PEM', withKey({ pem: rsa.publicKey.export(spki) })],
    [
      'a PEM with escaped line breaks',
      withKey({ pem: String(rsa.publicKey.export(spki)).replaceAll('\n', '\\n') }),
    ],
    ['an RSA key as JWK', withKey({ alg: 'PS256', jwk: { ...jwkOf(rsa.publicKey), kid: 'k', use: 'sig' } })],
    [
      'keys of both curves',
      client({
        client_authentication_methods: {
          private_key_jwt: {
            credentials: [
              { alg: 'ES256', pem: p256.publicKey.export(spki) },
              { alg: 'ES384', jwk: jwkOf(p384.publicKey) },
            ],
          },
        },
      }),
    ],
    [
      'codes of 4 and 12 digits',
      {
        connections: [4, 12].map((length) => ({
          name: `c${length}`,
          strategy: 'sms',
          options: { totp: { length } },
        })),
      },
    ],
    [
      'unchecked options of unsupported strategies',
      {
        connections: [{ name: 'c', strategy: 'bitbucket', options: { totp: { length: 60 } } }],
      },
    ],
    ['a matching pair of web push keys', { webPush: vapid.pair }],
    ['an HS256 API', api({ signing_alg: 'HS256', signing_secret: 's'.repeat(32) })],
  ];
  for (const [what, file] of taken) {
    it(what, () => {
      expect(faultsOf(file)).to.deep.equal([]);
    });
  }
});

/** Returns the message of a start on a data directory that fails; empty when it starts. */
async function refusalToStart(dataDir: string): Promise<string> {
  try {
    await (await startServer({ tenant, dataDir })).stop();
    return '';
  } catch (thrown) {
    return (thrown as Error).message;
  }
}

describe('the server', () => {
  it('does not start with an invalid application, and gatehouse check names it in the same way', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'gatehouse-clients-'));
    try {
      const file =
        'clients:\n  - { client_id: a, name: A }\n  - { client_id: b, name: B, client_secret: kürz }\n';
      writeFileSync(join(cwd, 'tenant.yaml'), file);
      for (const command of ['check', 'start']) {
        const env = { TENANT_FILE: 'tenant.yaml', PORT: '0' };
        const { code, stderr } = await runToEnd({ cwd, env, command: [process.execPath, CLI, command] });
        expect(code, command).to.equal(1);
        expect(stderr, command)
          .to.match(/clients[.[]1\]?\.client_secret/)
          .and.not.contain('kürz');
      }
    } finally {
      rmSync(cwd, { recursive: true, force: true });
    }
  });

  describe('with an application that has become public', () => {
    let server: TestServer;
    beforeEach(async () => {
      server = await startServer({ tenant });
    });
    afterEach(() => server.stop());

    it('issues it no token by client_credentials, whatever its grant types', async () => {
      const clients = server.store.collection('clients');
      const ask = (fields: Record<string, string>) =>
        token(createAgent(server), {
          grant_type: 'client_credentials',
          client_id: 'm2m',
          audience: API,
          ...fields,
        });
      expect((await ask({ client_secret: 'm2m-secret' })).status).to.equal(200);
      await clients.update(
        'm2m',
        (record) =>
          ({
            ...(structuredClone(record) as typeof record & { id: string }),
            token_endpoint_auth_method: 'none',
          }) as never,
      );
      for (const fields of [{}, { client_secret: 'm2m-secret' }, { client_secret: 'wrong' }] as Record<
        string,
        string
      >[]) {
        const answer = await ask(fields);
        expect(answer.status, JSON.stringify(fields)).to.be.within(400, 403);
        expect(answer.json()).not.to.have.property('access_token');
      }
      expect((await ask({})).json()).to.deep.equal({
        error: 'unauthorized_client',
        error_description: "Grant type 'client_credentials' not allowed for the client.",
      });
    });
  });

  it('does not start on a store with applications that a tenant file would be rejected for, and says what to do', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-clients-'));
    try {
      const before = await startServer({ tenant, dataDir });
      const clients = before.store.collection('clients');
      const change = (id: string, more: object) =>
        clients.update(id, (record) => ({ ...(structuredClone(record) as object), ...more }) as never);
      await change('web', { client_secret: 'kürz-und-gut' });
      await change('hs256', { client_secret: 'too-short-for-hs256' });
      await before.stop();
      const refusal = await refusalToStart(dataDir);
      expect(refusal)
        .to.contain(dataDir)
        .and.contain('gatehouse apply')
        .and.match(/clients web: client_secret: .*ASCII/)
        .and.match(/clients hs256: client_secret: .*32 characters/);
      expect(refusal).not.to.match(/kürz|too-short-for/);
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  it('does not start with an application that the engine would reject at each request', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'gatehouse-clients-'));
    try {
      const before = await startServer({ tenant, dataDir });
      await before.store
        .collection('clients')
        .update('m2m', ({ client_secret: _lost, ...record }) => structuredClone(record) as never);
      await before.stop();
      const text = await refusalToStart(dataDir);
      expect(text).to.match(/cannot be served:\n {2}- m2m: client_secret is mandatory/);
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  it('does not give client_credentials to a public application without grant types', async () => {
    const server = await startServer({
      tenant: { clients: [{ client_id: 'x', name: 'X', token_endpoint_auth_method: 'none' }] },
    });
    try {
      expect((await server.store.collection('clients').get('x'))?.grant_types)
        .to.include('authorization_code')
        .and.not.include('client_credentials');
    } finally {
      await server.stop();
    }
  });
});
