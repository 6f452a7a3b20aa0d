// Exports of users whose credential contains no password.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommand } from '../support/command.ts';
import { serveFolder } from '../support/server.ts';

describe('an export of users with hashes', () => {
  let cwd: string;
  before(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-export-'));
    writeFileSync(join(cwd, 'tenant.yaml'), 'databases:\n  - name: people\n');
  });
  after(() => rmSync(cwd, { recursive: true, force: true }));

  const envOf = (data: string) => ({ TENANT_FILE: 'tenant.yaml', DATA_DIR: data });
  const run = (data: string, ...args: string[]) => runCommand({ cwd, env: envOf(data), args });

  it('has no hash for a user without a password whose identities were unlinked, and can be imported', async () => {
    const server = await serveFolder(cwd, envOf('from'));
    try {
      const [primary, other] = ['primary@example.test', 'other@example.test'].map((email) => ({
        connection: 'people',
        provider: 'auth0',
        upstreamId: email.slice(0, email.indexOf('@')),
        addresses: { email },
        unique: ['email'] as const,
      }));
      for (const identity of [primary, other]) if (identity) await server.users.create({ identity });
      expect(await server.users.link('auth0|primary', 'auth0|other')).to.equal(true);
      const linked = (await server.users.identitiesOf('auth0|primary')).find(
        ({ upstream_id }) => upstream_id === 'other',
      );
      expect(await server.users.unlink('auth0|primary', linked?.id ?? '')).to.equal(true);
      const exported = await run('from', 'users', 'export', '--with-hashes', '-o', 'out.json');
      expect(exported.code, exported.stderr).to.equal(0);
    } finally {
      await server.stop();
    }
    expect((await run('to', 'apply')).code).to.equal(0);
    const imported = await run('to', 'users', 'import', 'out.json');
    expect(imported.stdout, imported.stderr).to.contain('2 users: 2 inserted, 0 updated, 0 failed');
  });
});
