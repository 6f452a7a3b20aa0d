// What `gatehouse move out` writes about the tenant: the hosted service's deploy tool takes it, and Gatehouse takes it back.
import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { z } from 'zod';
import { FORMATS, type Format } from '../../src/moving/leaving-layout.ts';
import { SECTIONS } from '../../src/moving/leaving-sections.ts';
import { tenantFileSchema } from '../../src/records/tenant/tenant.ts';
import { ADMIN, startManaged } from '../management/support.ts';
import { runCommand } from '../support/command.ts';
import { importByTool, readByTool } from '../support/deploy-tool.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { order } from '../support/tenant-folder.ts';
import { EVERYTHING } from '../tenant/everything.ts';
import { clientMembers, schemaMembers } from './deploy-tool-members.ts';

const vapid = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const { x = '', y = '', d = '' } = vapid.privateKey.export({ format: 'jwk' });
const point = Buffer.concat([Buffer.from([4]), Buffer.from(x, 'base64url'), Buffer.from(y, 'base64url')]);

const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
const script = 'function (email, callback) { callback(null); }\n';

/** A tenant with all sections that the store can have. */
const WHOLE = {
  ...EVERYTHING,
  clients: [
    ...EVERYTHING.clients,
    {
      client_id: 'keys',
      name: 'Key holder',
      app_type: 'non_interactive',
      standard_claims: true,
      client_authentication_methods: {
        private_key_jwt: {
          credentials: [
            { kid: 'first', alg: 'RS256', jwk: { ...publicKey.export({ format: 'jwk' }), kid: 'first' } },
          ],
        },
      },
    },
  ],
  databases: [
    { name: 'Username-Password-Authentication', enabled_clients: ['Example SPA', 'Example web app'] },
    {
      name: 'legacy',
      options: {
        enabledDatabaseCustomization: true,
        import_mode: true,
        customScripts: { login: script, get_user: script },
      },
    },
  ],
  customClaims: [{ claim: 'https://a.example/plan', value: 'user.app_metadata.plan', to: ['id_token'] }],
  emailProvider: {
    name: 'smtp',
    default_from_address: 'a@example.test',
    credentials: {
      smtp_host: 'smtp.example.test',
      smtp_port: 2525,
      smtp_user: 'u',
      smtp_pass: 'of-the-mail',
    },
  },
  guardianPhoneFactorMessageTypes: { message_types: ['sms', 'voice', 'pigeon'] },
  managementApi: { token_lifetime: 1800 },
  webPush: { subject: 'mailto:a@example.test', public_key: point.toString('base64url'), private_key: d },
};

/** Names that an administrator of the tenant may choose. */
const NAMES = [
  ...[
    '../../../etc/cron.d/x',
    '..',
    '.',
    '/etc/passwd',
    'a/b',
    'a-b',
    'A-B',
    'a\\b',
    'con',
    'NUL.json',
    'aux',
  ],
  ...[
    'Straße',
    'STRASSE',
    'ﬁ',
    'fi',
    'é',
    'e\u0301',
    'x\u0000y',
    'line\nfeed',
    '\u202etxt.exe',
    '---',
    '- x',
  ],
  ...[
    'yes',
    'no',
    '1e3',
    '0x10',
    '2026-01-02',
    '~',
    'null',
    '<<',
    '__proto__',
    'a: b',
    '#x',
    'é'.repeat(120),
  ],
  ...['##STOLEN##x', '@@STOLEN@@', "'@@STOLEN@@'", '${STOLEN}', './code.js', '$&', ' ', 'end.', '[a]', '*a'],
];

/** Values that readers of YAML take for something else, or that tools replace. */
const VALUES = Object.fromEntries(
  [
    ...['yes', 'no', 'on', 'y', '1e3', '0x10', '0o7', '1_000', '12:30', '2026-01-02', '2026-01-02T03:04:05Z'],
    ...[
      '.inf',
      '~',
      'null',
      'true',
      '<<',
      '=',
      '!!js/function x',
      '&a',
      '*a',
      '- a',
      '? a',
      'a: b',
      'a #b',
      '',
    ],
    ...['##STOLEN##', '\\##STOLEN##', '@@STOLEN@@', '"@@STOLEN@@"', '${STOLEN}', '\\${STOLEN}', '../x.js'],
    ...['tab\there', '\r\n', '\u0000', '\u007f\u0085\u2028\u2029\ufeff\ufffe', '\ud83d\ude00', '__proto__'],
  ].flatMap((value, index) => [
    [`k${index}`, value],
    [index === 0 ? 'constructor' : value === '__proto__' ? 'toString' : value || 'empty', 'v'],
  ]),
);

/** A tenant whose names and values somebody has chosen to do harm. */
const HOSTILE = {
  clients: NAMES.map((name, index) => ({
    client_id: `c${index}`,
    name,
    app_type: 'spa',
    ...(index === 0 && { client_metadata: VALUES }),
  })),
  roles: NAMES.map((name) => ({ name })),
  databases: [{ name: 'users', enabled_clients: NAMES.map((_name, index) => `c${index}`) }],
  // Names of Actions differ by more than case.
  actions: NAMES.filter(
    (name, index) => NAMES.findIndex((one) => one.toLowerCase() === name.toLowerCase()) === index,
  ).map((name) => ({
    name,
    code: `exports.onExecutePostLogin = () => '##STOLEN##';`,
    supported_triggers: [{ id: 'post-login', version: 'v3' }],
    deployed: true,
  })),
  prompts: { partials: { 'login-id': { 'login-id': { 'form-content-start': './stolen.js' } } } },
};

/** What differs in a tenant that the tool has made, beside ids. */
const EXPLAINED = [
  // The Management API and the tool add what the hosted service has by default.
  /^- prompts\.(universal_login_experience|webauthn_platform_first_factor)/,
  /^- clients\.\w+\.(custom_login_page_on|sso_disabled|cross_origin_authentication|client_secret):/,
  /^- connections\.[\w-]+\.options\.disable_self_service_change_password: false/,
  /^- clientGrants\.\w+ https:\/\/api\.example\.test\/\.subject_type: "client"/,
  /^- attackProtection\.breachedPasswordDetection/,
  // The tool's own access.
  /^- (clients\.admin$|clientGrants\.admin )/,
  // Keys that are made by a request have ids, and the service's own key id.
  /^- clients\.\w+\.client_authentication_methods\.private_key_jwt\.credentials\[0\]\.(id|kid|\w+_at|credential_type):/,
  // The Management API keeps it with the other settings of second factors.
  /^\+ guardianPhoneFactorMessageTypes: /,
  // It deploys Actions by a request, which makes a version.
  /^[-~+] actions\.Greet\.body\.(all_changes_deployed|deployed|deployed_secrets|deployed_version|versions)/,
  // A domain has to be proved anew.
  /^- customDomains\.login\.example\.test\.body\.verification/,
];

/** Where the tenant is in the output. */
const TENANT: Readonly<Record<Format, string>> = { yaml: 'tenant.yaml', directory: 'tenant' };

describe('the tenant that moves out', () => {
  let folder: string;
  const servers: TestServer[] = [];
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gatehouse-out-'));
  });
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
  });
  after(() => rm(folder, { recursive: true }));

  const start = async (tenant: object) => {
    const server = await startServer({ tenant });
    servers.push(server);
    return server;
  };
  let count = 0;
  /** @returns the folder that the command has written, and what it said */
  const moveOut = async (server: TestServer, format: Format) => {
    const output = join(folder, `out-${++count}`);
    const { code, stdout, stderr } = await runCommand({
      cwd: folder,
      env: { DATA_DIR: server.dataDir },
      args: ['move', 'out', '--output', output, '--format', format],
    });
    expect(code, stdout + stderr).to.equal(0);
    return { output, tenant: join(output, TENANT[format]), stdout, stderr };
  };

  for (const format of FORMATS)
    it(`is read by the deploy tool, and is no change here: ${format}`, async () => {
      const server = await start(WHOLE);
      const { tenant, output } = await moveOut(server, format);
      const [read] = await readByTool([tenant]);
      expect(Object.keys(read ?? {})).to.include.members([
        'clients',
        'databases',
        'actions',
        'organizations',
      ]);
      expect(await order(server, 'plan', { path: tenant })).to.deep.equal([]);
      for (const entry of readdirSync(output, { recursive: true, withFileTypes: true })) {
        const { mode } = statSync(join(entry.parentPath, entry.name));
        expect(mode & 0o777, entry.name).to.equal(entry.isDirectory() ? 0o700 : 0o600);
      }
    });

  it('is the same to the deploy tool in both formats', async () => {
    const server = await start(WHOLE);
    const paths: string[] = [];
    for (const format of FORMATS) paths.push((await moveOut(server, format)).tenant);
    const [yaml = {}, directory = {}] = (await readByTool(paths)).map(sorted);
    // What the tool wants in a folder, or adds when it reads one.
    const { breachedPasswordDetection: _, ...protection } = Object(directory.attackProtection);
    const { screenRenderers: _none, ...prompts } = Object(directory.prompts);
    expect({ ...directory, attackProtection: protection, prompts }).to.deep.include(withoutEmpty(yaml));
  });

  for (const format of FORMATS)
    it(`is imported by the deploy tool into an empty tenant, but for what is named: ${format}`, async () => {
      const { tenant } = await moveOut(await start(WHOLE), format);
      const second = await startManaged({});
      servers.push(second);
      const said = await importByTool(
        {
          domain: new URL(second.url).host,
          clientId: ADMIN.client_id,
          clientSecret: ADMIN.client_secret,
          caFile: second.caFile,
        },
        tenant,
      );
      expect(said)
        .to.contain('Import Successful')
        .and.not.match(/Stripping|Skipping|failed/);
      // Without the part that has the ids, which differ.
      await rm(join(format === 'yaml' ? dirname(tenant) : tenant, 'gatehouse-only.yaml'));
      const lines = await order(second, 'plan', { path: tenant });
      expect(lines.filter((line) => !EXPLAINED.some((one) => one.test(line)))).to.deep.equal([]);
      const [holder] = await second.store
        .collection('clients')
        .findBy('name', 'Key holder')
        .catch(() => []);
      expect(holder === undefined || JSON.stringify(holder).includes('BEGIN PUBLIC KEY')).to.equal(true);
    });

  it('has every section that the store can have, in one of its two parts', async () => {
    const server = await start(WHOLE);
    const { tenant } = await moveOut(server, 'yaml');
    const theirs = Object.keys(parse(readFileSync(tenant, 'utf8')));
    const own = parse(readFileSync(join(tenant, '../gatehouse-only.yaml'), 'utf8'));
    const written = new Set([...theirs, ...Object.keys(own.members), ...Object.keys(own.items)]);
    const missing = Object.keys(tenantFileSchema.shape).filter((section) => !written.has(section));
    // Users of the tenant file are for development alone; `unmanaged` is of a file, not of a tenant.
    expect(missing).to.have.members(['users', 'unmanaged']);
  });

  it('keeps what hostile names and values say, in files of its own folder', async () => {
    const server = await start(HOSTILE);
    const outside = contentsOf(folder);
    for (const format of FORMATS) {
      const { tenant, output } = await moveOut(server, format);
      expect(await order(server, 'plan', { path: tenant, env: { STOLEN: 'of-the-shell' } })).to.deep.equal(
        [],
      );
      const [read = {}] = await readByTool([tenant], { STOLEN: 'of-the-shell' });
      const named = (section: string) => (read[section] as any[]).map(({ name }) => name);
      // The hosted service takes no < in the name of an application, and the tool stops at members of each object.
      expect(named('clients')).to.have.members(NAMES.filter((name) => !['<<', '__proto__'].includes(name)));
      expect(named('roles')).to.have.members(NAMES.filter((name) => name !== '__proto__'));
      const [metadata] = (read.clients as any[]).map((one) => one.client_metadata).filter(Boolean);
      expect(metadata).to.deep.equal(VALUES);
      // Scripts are files, in which nothing can be escaped: see `--env false`.
      const { actions, ...others } = read;
      expect(JSON.stringify(others)).not.to.contain('of-the-shell');
      expect(JSON.stringify(actions)).to.contain('of-the-shell');
      const written = Object.keys(contentsOf(folder)).filter((name) => !Object.hasOwn(outside, name));
      expect(written.every((name) => name.startsWith(output.slice(folder.length)))).to.equal(true);
      Object.assign(outside, contentsOf(folder));
      const names = written.map((name) => name.normalize('NFKD').toUpperCase());
      expect(new Set(names).size, 'no two names that a file system takes for one').to.equal(names.length);
      for (const name of written) {
        expect(name)
          .to.match(/^[\p{L}\p{M}\p{N} _./-]+$/u)
          .and.not.match(/\/(?:\.|(?:con|nul|aux)(?:\.|$))/i);
        for (const step of name.split('/')) expect(Buffer.byteLength(step)).to.be.below(200);
      }
    }
  });

  it('is accepted by check and move check, with what only Gatehouse knows, and a fault in that is named', async () => {
    const { tenant, output } = await moveOut(await start(WHOLE), 'yaml');
    const command = (...args: string[]) =>
      runCommand({ cwd: folder, env: { DATA_DIR: join(folder, 'none'), TENANT_FILE: tenant }, args });
    const checked = await command('check');
    expect(checked.code, checked.stderr).to.equal(0);
    expect((await command('move', 'check', tenant)).code).to.be.oneOf([0, 2]);
    const own = join(output, 'gatehouse-only.yaml');
    const given = readFileSync(own, 'utf8');
    for (const [wrong, cause] of [
      [`${given}nonsense: 1\n`, /nonsense/],
      [given.replace('name: Key holder', 'name: Another'), /gatehouse-only\.yaml:\d+/],
      [given.replace('gatehouse: 1', 'gatehouse: 2'), /gatehouse-only\.yaml:\d+/],
      [
        given.replace('standard_claims: true', 'standard_claims: often'),
        /standard_claims.*gatehouse-only\.yaml:\d+/s,
      ],
      ['][', /gatehouse-only\.yaml/],
    ] as const) {
      expect(wrong).not.to.equal(given);
      await writeFile(own, wrong);
      const { code, stdout, stderr } = await command('check');
      expect(code, stdout).to.equal(1);
      expect(stderr).to.match(cause);
    }
  });

  it('does not write into a folder that somebody else has made, or through a link', async () => {
    const server = await start({});
    const target = await mkdtemp(join(folder, 'target-'));
    const link = join(folder, 'linked');
    await symlink(target, link);
    await symlink(target, `${join(folder, 'fresh')}.unfinished`);
    const out = (output: string) =>
      runCommand({
        cwd: folder,
        env: { DATA_DIR: server.dataDir },
        args: ['move', 'out', '--output', output],
      });
    expect((await out(link)).code).to.equal(1);
    expect((await out(join(folder, 'fresh'))).code).to.equal(0);
    expect(readdirSync(target)).to.deep.equal([]);
  });

  it('has nothing that the deploy tool does not know, unless it is named as ours', () => {
    const known = new Set([...schemaMembers(), ...clientMembers()].map((path) => path.join('.')));
    const unknown = membersOf(tenantFileSchema, [])
      .filter(([section = '']) => SECTIONS[section as keyof typeof SECTIONS] !== 'ours')
      .map((path) => path.join('.'))
      .filter((path) => !known.has(path) && !isOurs(path) && !UNSAID.some((one) => one.test(path)));
    expect([...new Set(unknown)]).to.deep.equal([]);
  });

  it('is written byte for byte the same again', async () => {
    const server = await start(WHOLE);
    for (const format of FORMATS) {
      const [first, second] = [await moveOut(server, format), await moveOut(server, format)];
      expect(contentsOf(second.output)).to.deep.equal(contentsOf(first.output));
    }
  });
});

const isOurs = (path: string) => {
  const [section = '', ...member] = path.split('.');
  const place = SECTIONS[section as keyof typeof SECTIONS];
  const ours = typeof place === 'string' ? [] : (place.ours ?? []);
  const text = member.join('.');
  return ours.some((one) => text === one || text.startsWith(`${one}.`));
};

/** What the hosted service has, and neither the tool's schemas nor the types of its client say. */
const UNSAID = [
  /^[^.]+$/,
  /^branding\.(logo_url|favicon_url|colors)/,
  /^(emailProvider|emailTemplates|attackProtection|guardianFactors|guardianFactorTemplates)\./,
  /^(databases|connections)\.(display_name|enabled_clients|realms|is_domain_connection|show_as_button)$/,
  /^databases\.options\.(requires_username|disable_signup|brute_force_protection|domain_aliases)$/,
  /^clients\.client_authentication_methods\./,
  /^clients\.addons\.samlp\./,
  /^clients\.oidc_backchannel_logout/,
  /^clientGrants\.(organization_usage|allow_any_organization)$/,
  /^organizations\.(client_grants\.audience|connections\.name)$/,
  /^resourceServers\.authorization_details\./,
  // Such roles go into the own part as a whole.
  /^roles\.owner_id$/,
];

/** Returns the paths of the members of a schema; lists have no step of their own. */
function membersOf(given: unknown, path: readonly string[]): string[][] {
  const schema =
    given instanceof z.ZodPipe ? (given.in instanceof z.ZodTransform ? given.out : given.in) : given;
  if (schema !== given) return membersOf(schema, path);
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault
  )
    return membersOf(schema.unwrap(), path);
  if (schema instanceof z.ZodArray) return membersOf(schema.element, path);
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((one) => membersOf(one, path));
  if (!(schema instanceof z.ZodObject)) return [];
  return Object.entries(schema.shape).flatMap(([name, inner]) => [
    [...path, name],
    ...membersOf(inner, [...path, name]),
  ]);
}

function contentsOf(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    entries.sort().map((path) => [path.slice(folder.length), readFileSync(path, 'utf8')]),
  );
}

/** Returns what the tool read with the items of lists in an order of their own. */
function sorted(sections: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(sections).map(([name, value]) => [
      name,
      Array.isArray(value)
        ? [...value].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
        : value,
    ]),
  );
}

const withoutEmpty = (sections: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(sections).filter(([, value]) => !Array.isArray(value) || value.length > 0),
  );
