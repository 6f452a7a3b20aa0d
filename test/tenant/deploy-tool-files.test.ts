// Tenant files as the hosted service's deploy tool writes and reads them.
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { type LoadedTenant, loadTenantFile, TenantFault } from '../../src/tenant/load.ts';

describe('a tenant file of the deploy tool', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'gatehouse-tenant-'));
  });
  afterEach(() => rm(directory, { recursive: true }));

  const write = async (name: string, text: string) => {
    const path = join(directory, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
    return path;
  };
  const load = async (yaml: string, env: Record<string, string> = {}): Promise<LoadedTenant> =>
    loadTenantFile(await write('tenant.yaml', yaml), env);
  const faultsOf = async (yaml: string, env: Record<string, string> = {}) => {
    const thrown: unknown = await load(yaml, env).catch((fault: unknown) => fault);
    expect(thrown).to.be.instanceOf(TenantFault);
    return (thrown as TenantFault).faults.map((fault) => fault.replaceAll(`${directory}/`, ''));
  };

  describe('takes variables of the environment', () => {
    it('outside of quotes, as text before it is parsed', async () => {
      const { tenant } = await load(
        `
tenant:
  friendly_name: ##NAME## of ##PLACE##
  session_lifetime: ##HOURS##
`,
        { NAME: 'Users', PLACE: 'Berlin', HOURS: '12' },
      );
      expect(tenant.tenant).to.include({ friendly_name: 'Users of Berlin', session_lifetime: 12 });
    });

    it('as lists, objects, numbers and texts in JSON, in quotes or not', async () => {
      const { tenant } = await load(
        `
tenant: { friendly_name: @@NAME@@, session_lifetime: "@@HOURS@@", support_url: '@@URL@@' }
clients:
  - { client_id: web, name: Web, callbacks: @@CALLBACKS@@, client_metadata: '@@METADATA@@' }
`,
        {
          NAME: 'a "name": [with] # marks',
          HOURS: '12',
          URL: 'https://help.test',
          CALLBACKS: '["https://a.test/cb",\n "https://b.test/cb"]',
          METADATA: '{"team": "one"}',
        },
      );
      expect(tenant.tenant).to.include({
        friendly_name: 'a "name": [with] # marks',
        session_lifetime: 12,
        support_url: 'https://help.test',
      });
      expect(tenant.clients[0]).to.deep.include({
        callbacks: ['https://a.test/cb', 'https://b.test/cb'],
        client_metadata: { team: 'one' },
      });
    });

    it('in quotes and block texts as a part of the text, whatever they contain', async () => {
      const value = 'x"\nclients: [{ client_id: evil, name: Evil }]';
      const { tenant } = await load(
        `
tenant: { friendly_name: "##VALUE##", support_email: '##VALUE##' }
rules:
  - name: one
    script: |
      // ##VALUE##
`,
        { VALUE: value },
      );
      expect(tenant.tenant).to.include({ friendly_name: value, support_email: value });
      expect(tenant.rules?.[0]?.script).to.equal(`// ${value}\n`);
      expect(tenant.clients).to.deep.equal([]);
    });

    it('in a time that grows with their number, not with its square', async () => {
      const given = `clients: []\nothers:\n${'  - ##NAME## # ##NAME##\n'.repeat(8_000)}`;
      const before = process.cpuUsage();
      const { tenant } = await load(given, { NAME: 'a' });
      expect(tenant.clients).to.deep.equal([]);
      const { user, system } = process.cpuUsage(before);
      expect((user + system) / 1000).to.be.below(2_500);
    });

    it('never a second time in a value', async () => {
      const env = { A: 'x##B## @@B@@ ${B}', B: 'a secret' };
      const { tenant } = await load(
        'tenant:\n  friendly_name: z ##A##\n  support_email: "##A##"\n  support_url: @@A@@',
        env,
      );
      expect(tenant.tenant).to.include({
        friendly_name: `z ${env.A}`,
        support_email: env.A,
        support_url: env.A,
      });
    });

    it('not in comments, nor in what is in small letters between @@', async () => {
      const { tenant } = await load(`
##Tenant##
tenant: # ##NOT_SET##
  friendly_name: One # @@NOT_SET@@
pages: [{ name: login, html: "<p>@@config@@</p>" }]
`);
      expect(tenant.tenant.friendly_name).to.equal('One');
      expect(tenant.pages?.[0]?.html).to.equal('<p>@@config@@</p>');
    });

    it('and names each that is not set, with its line', async () => {
      const faults = await faultsOf(
        `tenant:
  friendly_name: ##MANY##
  session_lifetime: ##HOURS##
clients: @@CLIENTS@@
roles: "@@ROLES@@"
branding: { logo_url: "https://##HOST##/logo" }
`,
        { MANY: 'one\n    two\n    three' },
      );
      const notSet = (name: string, marker: string) =>
        `the environment variable ${name} is not set (the text itself is \\${marker})`;
      expect(faults).to.deep.equal([
        `##HOURS##: ${notSet('HOURS', '##HOURS##')} (tenant.yaml:3)`,
        `@@CLIENTS@@: ${notSet('CLIENTS', '@@CLIENTS@@')} (tenant.yaml:4)`,
        `@@ROLES@@: ${notSet('ROLES', '@@ROLES@@')} (tenant.yaml:5)`,
        `branding.logo_url: ${notSet('HOST', '##HOST##')} (tenant.yaml:6)`,
      ]);
    });

    it('in each file that it names, and names what is not set there with file and line', async () => {
      await write('rules/one.js', 'const a = "##A##";\nconst b = @@B@@;\nconst c = `${A} \\##A##`;\n');
      const yaml = 'rules: [{ name: one, script: ./rules/one.js }]';
      const { tenant } = await load(yaml, { A: 'first', B: '[1, 2]' });
      expect(tenant.rules?.[0]?.script).to.equal(
        'const a = "first";\nconst b = [1,2];\nconst c = `${A} ##A##`;\n',
      );
      expect(await faultsOf(yaml, { A: 'first' })).to.deep.equal([
        'the environment variable B is not set (the text itself is \\@@B@@) (rules/one.js:2)',
      ]);
    });
  });

  describe('has ${name} as a mark of', () => {
    it('scripts, texts and messages, where it is no variable', async () => {
      const text = 'a `${USER}` and \\${USER}';
      const quoted = JSON.stringify(text);
      const { tenant, warnings } = await load(
        `
rules: [{ name: one, script: ${quoted} }]
actions: [{ name: one, code: ${quoted} }]
prompts: { customText: { en: { login: { login: { title: ${quoted} } } } } }
emailTemplates: [{ template: verify_email, subject: ${quoted}, body: ${quoted} }]
`,
        { USER: 'somebody' },
      );
      expect(tenant.rules?.[0]?.script).to.equal(text);
      expect(tenant.actions?.[0]?.code).to.equal(text);
      expect(tenant.prompts?.customText?.en?.login).to.deep.equal({ login: { title: text } });
      expect(tenant.emailTemplates[0]).to.include({ subject: text, body: text });
      expect(warnings).to.deep.equal([]);
    });

    it('nothing elsewhere if no variable has that name, and says so; a secret without its value is a fault', async () => {
      const { tenant, warnings } = await load("tenant: { friendly_name: '${SOME} ${OTHER}' }", {
        SOME: 'one',
      });
      expect(tenant.tenant.friendly_name).to.equal('one ${OTHER}');
      expect(warnings.join()).to.contain('tenant.friendly_name: ${OTHER} is kept as it is');
      const secret = "clients: [{ client_id: web, name: Web, client_secret: 'prefix-${OTHER}' }]";
      expect(await faultsOf(secret)).to.deep.equal([
        'clients[0].client_secret: the environment variable OTHER is not set (the text itself is \\${OTHER}) (tenant.yaml:1)',
      ]);
    });
  });

  describe('takes from a file', () => {
    const MEMBERS: Record<string, (path: string) => string> = {
      'rules[0].script': (path) => `rules: [{ name: one, script: ${path} }]`,
      'actions[0].code': (path) => `actions: [{ name: one, code: ${path} }]`,
      'actionModules[0].code': (path) => `actionModules: [{ name: one, code: ${path} }]`,
      'databases[0].options.customScripts.login': (path) =>
        `databases: [{ name: users, strategy: auth0, options: { customScripts: { login: ${path} } } }]`,
      'connections[0].options.email.body': (path) =>
        `connections: [{ name: email, strategy: email, options: { email: { body: ${path} } } }]`,
      'clients[0].custom_login_page': (path) =>
        `clients: [{ client_id: one, name: One, custom_login_page: ${path} }]`,
      'pages[0].html': (path) => `pages: [{ name: login, html: ${path} }]`,
      'emailTemplates[0].body': (path) => `emailTemplates: [{ template: verify_email, body: ${path} }]`,
      'branding.templates[0].body': (path) =>
        `branding: { templates: [{ template: universal_login, body: ${path} }] }`,
      'prompts.partials.login.login.form-content-start': (path) =>
        `prompts: { partials: { login: { login: { form-content-start: ${path} } } } }`,
    };
    for (const [member, yaml] of Object.entries(MEMBERS)) {
      it(`${member}, never the path itself, and nothing outside of its folder`, async () => {
        await write('texts/one.js', 'the.text');
        for (const path of ['./texts/one.js', 'texts/one.js', '.\\texts\\one.js', 'texts\\one.js'])
          expect(JSON.stringify((await load(yaml(`'${path}'`))).tenant)).to.contain('"the.text"');
        const cause = async (path: string) => (await faultsOf(yaml(`'${path}'`))).join();
        expect(await cause('./texts/two.js')).to.equal(
          `${member}: ./texts/two.js cannot be read (there is no such file) (tenant.yaml:1)`,
        );
        const outside = 'it is not in the folder of the tenant file';
        await symlink('/etc', join(directory, 'link'));
        await writeFile(join(directory, '..', 'gatehouse-outside.js'), 'outside');
        await symlink('../../gatehouse-outside.js', join(directory, 'texts/linked.js'));
        for (const path of [
          '../../../../gatehouse-outside.js',
          '/etc/outside.js',
          './link/hostname',
          'texts/linked.js',
        ])
          expect(await cause(path), path).to.contain(outside);
        await rm(join(directory, '..', 'gatehouse-outside.js'));
      });
    }

    it('no path that the system refuses, which is a fault as any other', async () => {
      for (const path of ['./x\0.html', `./${'x'.repeat(300)}.html`]) {
        const page = { name: 'login', enabled: true, html: path };
        const [fault] = await faultsOf(JSON.stringify({ pages: [page] }));
        expect(fault).to.match(/^pages\[0\]\.html: .* cannot be read/);
      }
    });

    it('no code or page that only looks a little like a path', async () => {
      const scripts = [
        '// see ./x.js',
        'module.exports = require("./x.js")',
        'cb(null, user) // x.js',
        '/x/.js;',
      ];
      const rules = scripts.map((script, index) => ({ name: `rule ${index}`, script }));
      const { tenant } = await load(JSON.stringify({ rules }));
      expect(tenant.rules?.map(({ script }) => script)).to.deep.equal(scripts);
    });

    it('the page of an application and the mail of a connection also where the tool keeps them', async () => {
      await write('clients/one.html', 'a page @@config@@');
      await write('connections/email.html', 'a mail');
      const { tenant } = await load(`
clients: [{ client_id: one, name: One, custom_login_page: ./one.html }]
connections: [{ name: email, strategy: email, options: { email: { body: email.html } } }]
`);
      expect(tenant.clients[0]?.custom_login_page).to.equal('a page @@config@@');
      expect(tenant.connections[0]?.options).to.deep.nested.include({ 'email.body': 'a mail' });
    });
  });

  it('has null, an empty section or an empty text for what is not set', async () => {
    const { tenant, warnings } = await load(`
clients:
  - { client_id: one, name: One, callbacks: null, allowed_origins: null, app_type: '', jwt_configuration: null }
databases:
  - { name: users, strategy: auth0, options: { passwordPolicy: null, import_mode: null }, enabled_clients: null }
  - { name: more, strategy: auth0, options: { passwordPolicy: '' } }
connections:
resourceServers:
roles:
rules: []
organizations: null
emailTemplates:
tenant: { friendly_name: null, default_directory: null }
`);
    expect(tenant.clients[0]).to.deep.include({ callbacks: [], allowed_origins: [] });
    expect(tenant.clients[0]).to.not.have.property('app_type');
    expect(tenant.databases.map(({ options }) => options.passwordPolicy)).to.deep.equal(['good', 'good']);
    expect(tenant.connections).to.deep.equal([]);
    expect(tenant).to.not.have.property('roles');
    expect(tenant.rules).to.deep.equal([]);
    expect(warnings).to.deep.equal([]);
  });

  it('is refused for null and nothing where something is needed', async () => {
    expect((await faultsOf('clients: [{ name: null }]')).join()).to.contain('clients.0.name');
    expect((await faultsOf("clients: [{ client_id: x, name: '' }]")).join()).to.contain('clients.0.name');
    const secret = "clients: [{ client_id: x, name: X, client_secret: '' }]";
    expect((await faultsOf(secret)).join()).to.contain('clients.0.client_secret');
    expect((await faultsOf('clients: [null]')).join()).to.contain('clients.0');
  });
});
