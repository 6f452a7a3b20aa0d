// config/signing/pkcs11.mjs as the program that signs, with SoftHSM and OpenSC's pkcs11-tool, where both are installed (`apt-get install softhsm2 opensc`).
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose';
import { createAgent } from '../support/agent.ts';
import { header, PASSWORD_REQUEST, tenant, token } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { tenantWith } from '../support/tenant.ts';

const MODULE = '/usr/lib/softhsm/libsofthsm2.so';
const PIN = '123456';
const PROGRAM = fileURLToPath(new URL('../../config/signing/pkcs11.mjs', import.meta.url));
const SIGNING = { SIGNING: 'command', SIGNING_COMMAND: `${process.execPath} ${PROGRAM}` };
const KEYS = [
  ['RS256-1', 'rsa:2048'],
  ['RS512-1', 'rsa:2048'],
  ['PS256-1', 'rsa:2048'],
  ['ES256-1', 'EC:prime256v1'],
  ['EdDSA-1', 'EC:edwards25519'],
  ['another', 'rsa:2048'],
] as const;

const tenantOf = (alg: string) => tenantWith({ change: { web: { id_token_signed_response_alg: alg } } });

describe('keys in a PKCS #11 token (SoftHSM)', () => {
  let directory: string;
  const tool = (...args: string[]) =>
    execFileSync(
      'pkcs11-tool',
      ['--module', MODULE, '--token-label', 'gatehouse', '--login', '--pin', PIN, ...args],
      {
        stdio: 'pipe',
      },
    );

  before(function () {
    if (!existsSync(MODULE)) return this.skip();
    directory = mkdtempSync(join(tmpdir(), 'gatehouse-softhsm-'));
    mkdirSync(join(directory, 'tokens'));
    writeFileSync(
      join(directory, 'conf'),
      `directories.tokendir = ${directory}/tokens\nobjectstore.backend = file\n`,
    );
    // The program gets the environment of the server.
    Object.assign(process.env, {
      SOFTHSM2_CONF: join(directory, 'conf'),
      PKCS11_MODULE: MODULE,
      PKCS11_TOKEN: 'gatehouse',
      PKCS11_PIN: PIN,
    });
    execFileSync('softhsm2-util', [
      ...['--init-token', '--free', '--label', 'gatehouse', '--pin', PIN, '--so-pin', '12345678'],
    ]);
    for (const [index, [label, type]] of KEYS.entries())
      tool('--keypairgen', '--key-type', type, '--label', label, '--id', `0${index + 1}`);
  });
  after(() => {
    for (const name of ['SOFTHSM2_CONF', 'PKCS11_MODULE', 'PKCS11_TOKEN', 'PKCS11_PIN'])
      delete process.env[name];
    if (directory) rmSync(directory, { recursive: true, force: true });
  });

  for (const alg of ['RS512', 'PS256', 'ES256', 'EdDSA']) {
    it(`sign ID tokens with ${alg}, and access tokens with RS256`, async () => {
      const server: TestServer = await startServer({ tenant: tenantOf(alg), ownKeys: true, env: SIGNING });
      try {
        const agent = createAgent(server);
        const answer = await token(agent, {
          ...PASSWORD_REQUEST,
          scope: 'openid',
          audience: 'https://api.example.test/',
        });
        const { id_token, access_token } = answer.json();
        expect(header(id_token).alg).to.equal(alg);
        const keys = (await agent.get('/.well-known/jwks.json')).json() as JSONWebKeySet;
        expect(keys.keys).to.have.length(2);
        for (const jwt of [id_token, access_token]) await jwtVerify(jwt, createLocalJWKSet(keys));
        expect(server.logged()).not.to.contain(PIN);
      } finally {
        await server.stop();
      }
    });
  }

  it('sign for many requests at once, and for processes of another server meanwhile', async () => {
    const start = () => startServer({ tenant, ownKeys: true, env: SIGNING });
    const servers: TestServer[] = [];
    try {
      for (let i = 0; i < 2; i++) servers.push(await start());
      const answers = await Promise.all(
        Array.from({ length: 60 }, (_, i) =>
          token(createAgent(servers[i % 2] as TestServer), {
            grant_type: 'client_credentials',
            client_id: 'web',
            client_secret: 'web-secret',
            audience: 'https://api.example.test/',
          }),
        ),
      );
      expect(answers.filter(({ status }) => status !== 200).map(({ text }) => text)).to.deep.equal([]);
    } finally {
      for (const server of servers) await server.stop();
    }
  });

  it('refuse the start with a wrong PIN, with an explanation', async () => {
    process.env.PKCS11_PIN = '999999';
    const refused = await startServer({ tenant, ownKeys: true, env: SIGNING }).then(
      async (server) => {
        await server.stop();
        return 'it started';
      },
      (thrown: Error) => thrown.message,
    );
    expect(refused).to.match(/pkcs11-tool: .*(PIN|LOGIN)/i);
    expect(refused).not.to.contain('999999');
  });
});
