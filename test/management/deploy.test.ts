// The hosted service's deploy tool, unmodified, with every kind of setting that it supports.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { listAll } from '../../src/store/list-all.ts';
import { APPLIED_COLLECTIONS } from '../../src/tenant/tenant-records.ts';
import type { TestServer } from '../support/server.ts';
import { EVENT_STREAM, KEY_HOLDER, LEFT_OUT, MAPPINGS, SECRETS, writeSample } from './sample-tenant.ts';
import { ADMIN, callApi, startManaged } from './support.ts';

const run = promisify(execFile);
const PRELOADED = ['fast-timers', 'few-languages', 'fetch-retry'].flatMap((name) => [
  '--import',
  `./test/support/${name}.ts`,
]);

describe('the deploy tool', function () {
  // The tool limits its own request rate.
  this.timeout(900_000);
  const servers: TestServer[] = [];
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gatehouse-deploy-'));
  });
  after(async () => {
    for (const server of servers) await server.stop();
    await rm(folder, { recursive: true });
  });

  const start = async (tenant?: object) => {
    const server = await startManaged(tenant);
    servers.push(server);
    return server;
  };

  /** Runs the tool. @returns its output. @throws Error with its output */
  const tool = async (server: TestServer, args: readonly string[], mappings: object = {}) => {
    const { stdout, stderr } = await run(
      process.execPath,
      [...PRELOADED, 'node_modules/auth0-deploy-cli/lib/index.js', ...args],
      {
        maxBuffer: 50_000_000,
        env: {
          PATH: process.env.PATH,
          NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
          AUTH0_DOMAIN: new URL(server.url).host,
          AUTH0_CLIENT_ID: ADMIN.client_id,
          AUTH0_CLIENT_SECRET: ADMIN.client_secret,
          AUTH0_KEYWORD_REPLACE_MAPPINGS: JSON.stringify(mappings),
          NODE_EXTRA_CA_CERTS: server.caFile,
        },
      },
    ).catch((thrown: { stdout?: string; stderr?: string; message: string }) => {
      throw new Error(`${thrown.message}\n${thrown.stdout}\n${thrown.stderr}`);
    });
    return stdout + stderr;
  };

  const exportTo = async (server: TestServer, name: string) => {
    const output = join(folder, name);
    await tool(server, ['export', '--format', 'directory', '--output_folder', output]);
    return output;
  };

  const importFrom = (server: TestServer, input: string, mappings?: object) =>
    tool(server, ['import', '--input_file', input], mappings);

  it('imports every kind of setting, moves a tenant to an empty one, and changes nothing when repeated', async () => {
    const full = await start();
    await importFrom(full, await writeSample(join(folder, 'sample')));
    const exported = await exportTo(full, 'exported');
    const files = await filesOf(exported);
    for (const kind of EVERY_KIND)
      expect(
        Object.keys(files).filter((name) => name.startsWith(kind)),
        kind,
      ).not.to.deep.equal([]);
    for (const secret of Object.values(SECRETS)) expect(JSON.stringify(files)).not.to.contain(secret);

    // Exports lack public keys and the tokens of event streams, which the user has to add.
    const [keyHolder, stream] = ['clients/Sample key holder.json', 'event-streams/People.json'];
    await writeFile(join(exported, keyHolder), JSON.stringify(KEY_HOLDER));
    await writeFile(join(exported, stream), JSON.stringify(EVENT_STREAM));
    const given = await giveSecrets(exported);
    const empty = await start({});
    // An extension of the hosted API that the tool does not know; it does not change it.
    const claims = [
      { claim: 'https://example.test/plan', value: 'user.app_metadata.plan', to: ['id_token'] },
    ];
    await callApi(empty, 'PUT', '/custom-claims', { custom_claims: claims });
    await importFrom(empty, exported, MAPPINGS);
    expect(await filesOf(await exportTo(empty, 'moved'))).to.deep.equal(files);

    const before = await stateOf(empty);
    for (const secret of Object.values(SECRETS)) expect(JSON.stringify(before.records)).to.contain(secret);
    // Secrets are kept that the next import leaves out: those of connections, which the tool omits, and the stream's.
    await writeFile(join(exported, stream), JSON.stringify(files[stream]));
    for (const name of given) await writeFile(join(exported, name), JSON.stringify(files[name]));
    const { SMTP_USER, SMTP_PASS, TWILIO_AUTH_TOKEN } = MAPPINGS;
    const printed = await importFrom(empty, exported, { SMTP_USER, SMTP_PASS, TWILIO_AUTH_TOKEN });
    expect(printed).not.to.match(/Created \[|Deleted \[/);
    const after = await stateOf(empty);
    expect(await (await callApi(empty, 'GET', '/custom-claims')).json()).to.deep.equal({
      custom_claims: claims,
    });
    expect(after.records).to.deep.equal(before.records);
    // The tool removes the permissions of roles and adds them again.
    expect(
      after.changes.slice(before.changes.length).filter((one) => !/roles.*permissions/.test(one)),
    ).to.deep.equal([]);
  });
});

/** Adds the secrets that an export lacks. @returns the changed files */
async function giveSecrets(exported: string): Promise<string[]> {
  const change = async (name: string, more: (body: any) => object) => {
    const path = join(exported, name);
    const body: unknown = JSON.parse(await readFile(path, 'utf8'));
    await writeFile(path, JSON.stringify(more(body)));
    return name;
  };
  await mkdir(join(exported, 'rules-configs'), { recursive: true });
  for (const one of LEFT_OUT.rulesConfigs)
    await writeFile(join(exported, 'rules-configs', `${one.key}.json`), JSON.stringify(one));
  return [
    await change(`actions/${LEFT_OUT.action.name}.json`, (body) => ({ ...body, ...LEFT_OUT.action })),
    await change('database-connections/users-elsewhere/database.json', (body) => ({
      ...body,
      options: { ...body.options, configuration: LEFT_OUT.configuration },
    })),
  ];
}

/** Files and directories of an export, one for each kind of setting. */
const EVERY_KIND = [
  'action-modules/',
  'actions/',
  'attack-protection/',
  'branding/',
  'clients/',
  'connection-profiles/',
  'connections/',
  'custom-domains',
  'database-connections/',
  'emails/',
  'event-streams/',
  'flow-vault-connections/',
  'flows/',
  'forms/',
  'grants/',
  'guardian/factors/',
  'guardian/policies',
  'guardian/templates/',
  'hooks/',
  'log-streams/',
  'network-acls/',
  'organizations/',
  'pages/',
  'phone-providers/',
  'phone-templates/',
  'prompts/',
  'rate-limit-policies/',
  'resource-servers/',
  'risk-assessment/',
  'roles/',
  'rules/',
  'self-service-profiles/',
  'supplemental-signals',
  'tenant.json',
  'themes/',
  'token-exchange-profiles/',
  'triggers/',
  'user-attribute-profiles/',
];

/** Reads all files below a directory, with JSON parsed so that the order of members is irrelevant. */
async function filesOf(folder: string): Promise<Record<string, unknown>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async (entry) => {
        const path = join(entry.parentPath, entry.name);
        // The identifier of the My Account API contains the tenant's own origin.
        const text = (await readFile(path, 'utf8')).replace(
          /https:\/\/localhost:\d+(?=\/me\/")/,
          'https://own',
        );
        return [
          path.slice(folder.length + 1),
          path.endsWith('.json') ? movable(JSON.parse(text)) : text,
        ] as const;
      }),
  );
  return Object.fromEntries(files.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Returns the body without the verification record of a custom domain, which differs between tenants. */
function movable(body: unknown): unknown {
  return Array.isArray(body)
    ? body.map((one) => ('verification' in one ? { ...one, verification: undefined } : one))
    : body;
}

/** Reads all records of the configuration, and the logged changes, oldest first. */
async function stateOf({ store }: TestServer) {
  const records = await Promise.all(
    APPLIED_COLLECTIONS.map((name) => listAll(store.collection(name) as never)),
  );
  const logs = await listAll(store.collection('logs'));
  const changes = logs.filter(({ type }) => type === 'sapi' || type === 'fapi');
  return { records, changes: changes.map(({ details }) => JSON.stringify(details?.request)) };
}
