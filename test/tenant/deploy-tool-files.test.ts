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
branding: { logo_url: "https://##HOST##/logo", favicon_url: ##constructor## }
`,
        { MANY: 'one\n    two\n    three' },
      );
      const notSet = (name: string, marker: string) =>
        `the environment variable ${name} is not set (the text itself is \\${marker})`;
      expect(faults).to.deep.equal([
        `##HOURS##: ${notSet('HOURS', '##HOURS##')} (tenant.yaml:3)`,
        `@@CLIENTS@@: ${notSet('CLIENTS', '@@CLIENTS@@')} (tenant.yaml:4)`,
        `@@ROLES@@: ${notSet('ROLES', '@@ROLES@@')} (tenant.yaml:5)`,
        `##constructor##: ${notSet('constructor', '##constructor##')} (tenant.yaml:6)`,
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
      expect(warnings.join()).to.not.contain('USER');
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

describe('a folder of the deploy tool', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'gatehouse-folder-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  const write = async (name: string, content: unknown) => {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content, undefined, 2));
  };

  it('is a tenant: a file for each item, with the files that these name', async () => {
    await write('tenant.json', '{\n\t"friendly_name": "##NAME##",\n\t"session_lifetime": @@HOURS@@\n}');
    await write('clients/One.json', { name: 'One', app_type: 'spa', custom_login_page: './One_page.html' });
    await write('clients/One_page.html', 'page of one @@config@@');
    await write('clients/empty.json', {});
    await write('clients/Two.json', { name: 'Two', app_type: 'non_interactive' });
    await write('connections/email.json', {
      name: 'email',
      strategy: 'email',
      options: { email: { body: './email.html' } },
      enabled_clients: ['One'],
    });
    await write('connections/email.html', 'mail of the connection');
    await write('database-connections/users/database.json', {
      name: 'users',
      strategy: 'auth0',
      options: { customScripts: { login: './login.js' } },
    });
    await write('database-connections/users/login.js', 'function login() { return `${NAME}`; }');
    await write('resource-servers/API.json', { name: 'API', identifier: 'https://api.test' });
    await write('grants/two.json', { client_id: 'Two', audience: 'https://api.test', scope: [] });
    await write('rules/one.json', { name: 'one', script: './one.js' });
    await write('rules/one.js', '// the rule ##NAME##');
    await write('actions/two.json', { name: 'two', code: './actions/two/code.js', deployed: true });
    await write('actions/two/code.js', '// the action');
    await write('triggers/triggers.json', { 'post-login': [{ action_name: 'two' }] });
    await write('emails/provider.json', { name: 'smtp', enabled: false });
    await write('emails/verify_email.json', { template: 'verify_email', enabled: true });
    await write('emails/verify_email.html', 'the mail');
    await write('pages/login.json', { name: 'login', enabled: true });
    await write('pages/login.html', 'the page @@config@@');
    await write('branding/branding.json', { colors: { primary: '#112233' } });
    await write('branding/templates/universal_login.json', {
      template: 'universal_login',
      body: './universal_login.html',
    });
    await write('branding/templates/universal_login.html', 'the template');
    await write('prompts/prompts.json', { identifier_first: true });
    await write('prompts/custom-text.json', { en: { login: { login: { title: 'Hello ${NAME}' } } } });
    await write('prompts/partials.json', {
      login: [{ login: [{ name: 'form-content-start', template: 'partials/start.liquid' }] }],
    });
    await write('prompts/partials/start.liquid', 'the partial');
    await write('attack-protection/brute-force-protection.json', { enabled: true, max_attempts: 7 });
    await write('guardian/factors/otp.json', { name: 'otp', enabled: true });
    const files: string[] = [];
    const { tenant } = await loadTenantFile(folder, { NAME: 'Acme', HOURS: '9' }, (path) => files.push(path));
    expect(tenant.tenant).to.include({ friendly_name: 'Acme', session_lifetime: 9 });
    expect(tenant.clients.map(({ name }) => name)).to.deep.equal(['One', 'Two']);
    expect(tenant.clients[0]?.custom_login_page).to.equal('page of one @@config@@');
    expect(tenant.connections[0]?.options).to.have.nested.property('email.body', 'mail of the connection');
    expect(tenant.databases[0]?.options.customScripts?.login).to.contain('`${NAME}`');
    expect(tenant.clientGrants[0]?.client_id).to.equal('Two');
    expect(tenant.rules?.[0]?.script).to.equal('// the rule Acme');
    expect(tenant.actions?.[0]?.code).to.equal('// the action');
    expect(tenant.triggers).to.have.property('post-login');
    expect(tenant.emailProvider?.enabled).to.equal(false);
    expect(tenant.emailTemplates[0]?.body).to.equal('the mail');
    expect(tenant.pages?.[0]?.html).to.equal('the page @@config@@');
    expect(tenant.branding.colors.primary).to.equal('#112233');
    expect(tenant.branding.templates?.[0]?.body).to.equal('the template');
    expect(tenant.prompts).to.deep.include({
      identifier_first: true,
      customText: { en: { login: { login: { title: 'Hello ${NAME}' } } } },
      partials: { login: { login: { 'form-content-start': 'the partial' } } },
    });
    expect(tenant.attackProtection.bruteForceProtection?.max_attempts).to.equal(7);
    expect(JSON.stringify(tenant.guardianFactors)).to.contain('otp');
    expect(files).to.include(join(folder, 'rules/one.js')).and.include(join(folder, 'clients/One.json'));
  });

  it('has its faults with file and line, and nothing from outside', async () => {
    await write('clients/One.json', { name: 'One', app_type: 'toaster' });
    await write('clients/Two.json', { name: 'Two', description: 'x', callbacks: [1] });
    const faultsOf = async () => {
      const thrown: unknown = await loadTenantFile(folder, {}).catch((fault: unknown) => fault);
      expect(thrown).to.be.instanceOf(TenantFault);
      return (thrown as TenantFault).faults.map((fault) => fault.replaceAll(`${folder}/`, '')).sort();
    };
    const faults = await faultsOf();
    expect(faults[0]).to.match(/^clients\.0\.app_type: .* \(clients\/One\.json:3\)$/);
    expect(faults[1]).to.match(/^clients\.1\.callbacks\.0: .* \(clients\/Two\.json:5\)$/);
    await rm(join(folder, 'clients'), { recursive: true });
    await write('rules/a.json', '{ "name": ');
    await write('rules/b.json', { name: '##NOT_SET##', script: '../../x.js' });
    await writeFile(join(folder, '..', 'gatehouse-outside.json'), '{ "name": "outside" }');
    await symlink('../../gatehouse-outside.json', join(folder, 'rules/c.json'));
    await write('rules/d.json', '[1]');
    const others = (await faultsOf()).join('\n');
    await rm(join(folder, '..', 'gatehouse-outside.json'));
    expect(others)
      .to.match(/not valid YAML: .*\(rules\/a\.json:1\)/)
      .and.contain('NOT_SET is not set')
      .and.contain('../../x.js cannot be read (it is not in the folder of the tenant file) (rules/b.json:3)')
      .and.contain('rules/c.json: it is not in the folder of the tenant file')
      .and.contain('it is no JSON object (rules/d.json)');
  });
});
