// A directory that gives its entries no id of their own: where the operator is told.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runCommand } from '../../support/command.ts';
import { openConsole, startConsole } from '../../support/console.ts';
import { tenant as base } from '../../support/flows.ts';
import { until } from '../../support/wait-until.ts';
import { BASE, SERVICE, SERVICE_PASSWORD, startDirectory, type TestDirectory } from './directory.ts';

const UUID = 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6';
const WARNING = 'shows neither objectGUID nor entryUUID: its users are identified by uid';

describe('a directory without ids of its own', () => {
  let directory: TestDirectory;
  let cwd: string;
  before(async () => {
    directory = await startDirectory([]);
  });
  after(() => directory?.stop());
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-nameless-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  const isNow = (attributes: object) => {
    const entry = { dn: BASE, attributes: { objectClass: 'domain', dc: 'example', ...attributes } };
    directory.entries.splice(0, directory.entries.length, entry);
  };
  const connections = () => [
    {
      name: 'corp',
      strategy: 'ad',
      enabled_clients: ['web'],
      options: {
        LDAP_URL: directory.ldapsUrl,
        LDAP_CA: directory.ca,
        LDAP_BASE: BASE,
        LDAP_BIND_USER: SERVICE,
        LDAP_BIND_PASSWORD: SERVICE_PASSWORD,
      },
    },
  ];
  const run = (...args: string[]) => {
    const clients = [{ client_id: 'web', name: 'Web', app_type: 'spa', callbacks: [] }];
    // JSON is YAML.
    writeFileSync(join(cwd, 'tenant.yaml'), JSON.stringify({ clients, connections: connections() }));
    return runCommand({ cwd, env: { TENANT_FILE: 'tenant.yaml' }, args });
  };

  it('is named by gatehouse doctor and gatehouse check, and one with ids is not', async () => {
    isNow({});
    const found = async () => {
      const { stdout } = await run('doctor', '--json');
      const all = JSON.parse(stdout) as { check: string; verdict: string; text: string }[];
      return all.filter(({ check }) => check === 'directories');
    };
    const [warned] = await found();
    expect(warned?.verdict).to.equal('warning');
    expect(warned?.text).to.include(`the directory of corp ${WARNING}`);
    expect((await run('check')).stdout).to.include(`warning: the directory of corp ${WARNING}`);
    isNow({ entryUUID: UUID });
    expect((await found()).map(({ verdict }) => verdict)).to.deep.equal(['ok']);
    const checked = await run('check');
    expect([checked.code, checked.stdout.includes('warning: the directory')]).to.deep.equal([0, false]);
  });

  it('needs attention in the console', async () => {
    isNow({});
    const server = await startConsole({ tenant: { ...base, connections: connections() } });
    try {
      const browser = await openConsole(server, 'owner');
      await until(async () =>
        (await browser.get('/console')).text.includes('The users of corp are identified by a name'),
      );
    } finally {
      await server.stop();
    }
  });
});
