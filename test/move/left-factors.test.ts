// Users whose second factor at the old tenant is in no file that `gatehouse move in` reads: the password alone does not let
// them in, and does not let them enrol another factor.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import bcrypt from 'bcryptjs';
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { runCommand } from '../support/command.ts';
import { SCRATCH } from '../support/scratch-directory.ts';
import { serveFolder, type TestServer } from '../support/server.ts';

const SECRET = 'a-secret-of-the-applications-of-this-test';
const TENANT = `
tenant: { default_directory: people }
clients:
  - name: Web
    client_id: web
    client_secret: ${SECRET}
    app_type: regular_web
    grant_types: [password, 'http://auth0.com/oauth/grant-type/mfa-otp']
    token_endpoint_auth_method: client_secret_post
  - name: Support
    client_id: support
    client_secret: ${SECRET}
    app_type: non_interactive
    grant_types: [client_credentials]
    token_endpoint_auth_method: client_secret_post
clientGrants:
  - client_id: support
    audience: https://tenant.example.test/api/v2/
    allow_all_scopes: true
databases: [{ name: people, strategy: auth0, enabled_clients: [Web] }]
guardianFactors: [{ name: otp, enabled: true }]
guardianPolicies: [all-applications]
`;
const PASSWORD = 'Analytical-1';
const UPDATED = '2026-06-20T09:00:00.000Z';

const user = (id: string, more: object = {}) => ({
  user_id: `auth0|${id}`,
  email: `${id}@example.test`,
  created_at: '2021-11-01T09:00:00.000Z',
  updated_at: UPDATED,
  identities: [{ connection: 'people', provider: 'auth0', user_id: id, isSocial: false }],
  ...more,
});
/** With a factor that no file has. */
const mia = user('mia', { multifactor: ['guardian'] });
/** With one that a file has. */
const nia = user('nia', { multifactor: ['google-authenticator'] });
/** Without one, until the second export. */
const zoe = user('zoe');

describe('a second factor that does not move in', function () {
  this.timeout(240_000);
  let cwd: string;
  const envOf = (data: string) => ({ TENANT_FILE: 'export.yaml', DATA_DIR: data });
  const lines = (name: string, values: readonly object[]) =>
    writeFileSync(join(cwd, name), values.map((value) => `${JSON.stringify(value)}\n`).join(''));
  const moveIn = (data: string, ...more: string[]) =>
    runCommand({
      cwd,
      env: envOf(data),
      args: ['move', 'in', 'export.yaml', '--users', 'users.ndjson', '--hashes', 'hashes.ndjson', ...more],
    });

  before(async () => {
    cwd = mkdtempSync(join(SCRATCH, 'gatehouse-left-factors-'));
    writeFileSync(join(cwd, 'export.yaml'), TENANT);
    lines('users.ndjson', [mia, nia, zoe]);
    const passwordHash = await bcrypt.hash(PASSWORD, 4);
    const factors = { mfa_factors: [{ totp: { secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' } }] };
    lines('hashes.ndjson', [
      { _id: { $oid: 'mia' }, passwordHash },
      { _id: { $oid: 'nia' }, passwordHash, ...factors },
      { _id: { $oid: 'zoe' }, passwordHash },
    ]);
  });
  after(() => rmSync(cwd, { recursive: true, force: true }));

  /** Calls of the token endpoint and of the Management API. */
  const callsOf = (server: TestServer) => {
    const agent = createAgent(server);
    const secrets = { client_secret: SECRET };
    return {
      logIn: async ({ email }: { email: string }, password = PASSWORD) => {
        const form = { grant_type: 'password', client_id: 'web', ...secrets, username: email, password };
        const answer = await agent.request('/oauth/token', { json: form });
        const body = answer.json() as Record<string, unknown>;
        return { ...body, status: answer.status } as Record<string, unknown>;
      },
      manage: async (method: string, path: string) => {
        const audience = `${server.issuer}api/v2/`;
        const form = { grant_type: 'client_credentials', client_id: 'support', ...secrets, audience };
        const { access_token: token } = (await agent.request('/oauth/token', { json: form })).json();
        const headers = { authorization: `Bearer ${token}` };
        return agent.request(`/api/v2/${path}`, { method, headers });
      },
    };
  };
  const MAY_ENROL = (answer: Record<string, unknown>) =>
    (answer.mfa_requirements as { enroll?: unknown } | undefined)?.enroll !== undefined;

  it('leaves its user out after the password alone, until support removes it or the operator lets them enrol', async () => {
    const moved = await moveIn('refused');
    expect(moved.code, moved.stderr).to.equal(0);
    expect(moved.stdout).to.match(/second factor that no file has: 1; they are not let in .*--enrol/);
    const server = await serveFolder(cwd, envOf('refused'));
    try {
      const { logIn, manage } = callsOf(server);
      const wrong = await logIn(mia, 'Analytical-2');
      expect(wrong).to.include({ error: 'invalid_grant', error_description: 'Wrong email or password.' });
      expect(await logIn(mia)).to.deep.equal(wrong);
      const logs = (await manage('GET', 'logs?per_page=20&sort=date:-1')).json() as {
        description?: string;
      }[];
      expect(logs.some(({ description = '' }) => description.includes('move in --enrol'))).to.equal(true);
      // A factor that has moved is asked for, and a user who had none enrols one, as the policy says.
      expect((await logIn(nia)).mfa_requirements).to.have.property('challenge');
      expect(MAY_ENROL(await logIn(zoe))).to.equal(true);

      // What support sees and removes.
      const methods = `users/${encodeURIComponent(mia.user_id)}/authentication-methods`;
      expect((await manage('GET', methods)).json()).to.have.nested.property('[0].type', 'left-behind');
      expect((await manage('DELETE', methods)).status).to.equal(204);
      expect(MAY_ENROL(await logIn(mia))).to.equal(true);
      // A repeated move does not take that back, also with what is newer at the old tenant.
      lines('users.ndjson', [{ ...mia, name: 'Mia', updated_at: '2026-07-01T00:00:00.000Z' }, nia, zoe]);
      expect((await moveIn('refused')).stdout).to.contain('1 changed');
      expect(MAY_ENROL(await logIn(mia))).to.equal(true);

      // Somebody who enrolled one at the old tenant between two exports.
      const later = { ...zoe, multifactor: ['guardian'], updated_at: '2026-07-02T00:00:00.000Z' };
      lines('users.ndjson', [later]);
      expect((await moveIn('refused')).stdout).to.contain('1 changed');
      expect(await logIn(zoe)).to.deep.equal(wrong);
      expect((await moveIn('refused', '--enrol')).stdout).to.match(
        /no file has: 1; .*they enrol another one/,
      );
      expect(MAY_ENROL(await logIn(zoe))).to.equal(true);
    } finally {
      await server.stop();
      lines('users.ndjson', [mia, nia, zoe]);
    }
  });

  it('is enrolled anew after the password from the beginning with --enrol', async () => {
    const moved = await moveIn('enrolling', '--enrol');
    expect(moved.stdout, moved.stderr).to.match(
      /no file has: 1; .*they enrol another one after the password/,
    );
    const server = await serveFolder(cwd, envOf('enrolling'));
    try {
      expect(MAY_ENROL(await callsOf(server).logIn(mia))).to.equal(true);
    } finally {
      await server.stop();
    }
  });
});
