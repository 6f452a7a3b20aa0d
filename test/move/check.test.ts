// `gatehouse move check`: what it says of an export of the hosted service.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import type { Report } from '../../src/moving/report.ts';
import { NARROWEST } from '../support/accessibility.ts';
import { launchBrowser } from '../support/browser.ts';
import { runCommand } from '../support/command.ts';

const COMPLETE = `
tenant: { friendly_name: Acme }
clients:
  - { name: Shop, client_id: shop, app_type: spa, callbacks: ['https://shop.example/cb'] }
`;

describe('gatehouse move check', () => {
  let cwd: string;
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-move-'));
  });
  afterEach(() => rmSync(cwd, { recursive: true, force: true }));

  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(cwd, name)), { recursive: true });
    writeFileSync(join(cwd, name), text);
  };
  const run = (args: string[], env: Record<string, string> = {}) =>
    runCommand({ cwd, env, args: ['move', 'check', ...args] });
  const check = (text: string, env: Record<string, string> = {}, ...args: string[]) => {
    write('tenant.yaml', text);
    return run(['tenant.yaml', ...args], env);
  };
  const reportOf = async (
    text: string,
    env: Record<string, string> = {},
  ): Promise<Report & { code: unknown }> => {
    const { code, stdout } = await check(text, env, '--json');
    return { ...(JSON.parse(stdout) as Report), code };
  };
  const verdictOf = ({ objects }: Report, name: string) => objects.find((one) => one.name === name)?.verdict;

  it('exits with 0 where everything is in force', async () => {
    const { code, stdout } = await check(COMPLETE);
    expect(stdout).to.match(/in force +2\n/);
    expect(code).to.equal(0);
  });

  it('names file, line and cause of what cannot be read', async () => {
    const { code, stderr } = await check('clients:\n  - name: A\n    callbacks: [\n');
    expect(code).to.equal(1);
    expect(stderr).to.match(/not valid YAML: .*\(tenant\.yaml:\d\)/);
    expect((await run(['missing.yaml'])).stderr).to.contain(
      'missing.yaml cannot be read (there is no such file)',
    );
  });

  it('writes no character of an export that a terminal would obey', async () => {
    const { stdout } = await check(COMPLETE.replace('name: Shop', 'name: "Shop\\e]0;owned\\a\\e[2J\\u202e"'));
    expect(stdout).to.contain('Shop\\u001b]0;owned\\u0007\\u001b[2J\\u202e');
    expect(stdout).not.to.match(/[^\P{Cc}\n]|\u202e/u);
  });

  it('refuses a file that is no tenant', async () => {
    const { code, stderr } = await check('- 1\n- 2\n');
    expect(code).to.equal(1);
    expect(stderr).to.contain('it is no tenant').and.to.contain('(tenant.yaml)');
  });

  it('says what apply would refuse, with its place, and the rest all the same', async () => {
    const { code, stdout } = await check(`${COMPLETE}organizations:\n  - { display_name: Nameless }\n`);
    expect(code).to.equal(1);
    expect(stdout).to.match(/organizations\.0\.name: .*\(tenant\.yaml:6\)/);
    expect(stdout).to.match(/in force +application +Shop/);
  });

  it('asks for variables that are not set, once each, and not for those that are', async () => {
    const text = `
clients:
  - { name: ##ENV## Web, client_id: web, client_secret: ##WEB_SECRET##, callbacks: @@CALLBACKS@@ }
connections:
  - { name: g, strategy: google-oauth2, options: { client_id: a, client_secret: ##CONNECTIONS_G_SECRET## } }
`;
    const report = await reportOf(text, { ENV: 'prod' });
    expect(report.faults).to.deep.equal([]);
    expect(report.code).to.equal(2);
    expect(report.objects.flatMap(({ needs }) => needs.map(({ variable }) => variable))).to.deep.equal([
      'WEB_SECRET',
      'CALLBACKS',
      'CONNECTIONS_G_SECRET',
    ]);
    expect(verdictOf(report, 'prod Web')).to.equal('needs a value');
    const set = { ENV: 'prod', WEB_SECRET: 'x'.repeat(40), CALLBACKS: '[]', CONNECTIONS_G_SECRET: 's' };
    expect((await reportOf(text, set)).code).to.equal(0);
  });

  it('asks for ids and secrets that the deploy tool leaves out, and for those that are masked', async () => {
    const report = await reportOf(`
clients:
  - { name: Web, app_type: regular_web }
  - { name: Phone, app_type: native, client_id: p }
  - { name: Job, client_id: j, client_authentication_methods: { private_key_jwt: { credentials: [{ id: cred_1 }] } } }
connections:
  - { name: fb, strategy: facebook, options: {} }
  - { name: dir, strategy: auth0-adldap, options: {} }
actions:
  - { name: A, code: 'exports.onExecutePostLogin = async () => {}', secrets: [{ name: KEY, value: _VALUE_NOT_SHOWN_ }, { name: URL, value: _VALUE_NOT_SHOWN_ }] }
rulesConfigs: [{ key: MODE, value: _VALUE_NOT_SHOWN_ }]
emailProvider: { name: sendgrid, credentials: { api_key: ##SENDGRID_API_KEY## } }
resourceServers: [{ name: Old, identifier: 'urn:old', signing_alg: HS256 }]
customDomains: [{ domain: login.acme.example, type: auth0_managed_certs }]
`);
    const variables = report.objects.flatMap(({ needs }) => needs.map(({ variable }) => variable));
    expect(variables).to.deep.equal([
      ...['CLIENT_WEB_ID', 'CLIENT_WEB_SECRET', 'CLIENT_JOB_KEY_1'],
      ...['CONNECTION_FB_CLIENT_ID', 'CONNECTION_FB_CLIENT_SECRET'],
      ...['CONNECTION_DIR_LDAP_URL', 'CONNECTION_DIR_LDAP_BASE', 'CONNECTION_DIR_LDAP_BIND_USER'],
      ...['CONNECTION_DIR_LDAP_BIND_PASSWORD', 'API_OLD_SIGNING_SECRET', 'ACTION_A_KEY'],
      ...['ACTION_A_URL', 'RULESCONFIGS_MODE_VALUE', 'SENDGRID_API_KEY', 'SMTP_URL', 'TLS_CERT and TLS_KEY'],
    ]);
    // A credential without its key is a value to ask for, and no fault.
    expect(report.faults.filter((fault) => !fault.startsWith('resourceServers'))).to.deep.equal([]);
  });

  it('says once, with all places, what becomes of applications without ids, and what to do', async () => {
    const { stdout } = await check(
      'clients:\n  - { name: A, app_type: spa }\n  - { name: B, app_type: native }\n',
    );
    const said = stdout.split('\n').filter((line) => line.includes('AUTH0_EXPORT_IDENTIFIERS=true'));
    expect(said).to.have.length(1);
    expect(said[0]).to.match(/--identifiers and --from.*gets another one, which it does not know/);
    expect(stdout)
      .to.match(/application A: client_id: .*\(tenant\.yaml:2\)/)
      .and.to.match(/application B: client_id: .*\(tenant\.yaml:3\)/);
  });

  describe('agrees with move in', () => {
    /** Moves in what `check` was given last. */
    const moveIn = () =>
      runCommand({
        cwd,
        env: { TENANT_FILE: 'none.yaml', DATA_DIR: 'data' },
        args: ['move', 'in', 'tenant.yaml'],
      });

    for (const [name, setting, verdict] of [
      ['guardianPhoneFactorMessageTypes', '{ message_types: [sms] }', 'in force'],
      ['guardianPhoneFactorMessageTypes', '{ message_types: [sms, voice] }', 'not in force'],
      ['guardianPhoneFactorSelectedProvider', '{ provider: phone-message-hook }', 'in force, differently'],
      ['guardianFactorProviders', '[{ name: sms, provider: custom }]', 'in force, differently'],
      ['guardianFactorTemplates', "[{ name: sms, enrollment_message: 'x {{code}}' }]", 'in force'],
      ['guardianPolicies', '[all-applications]', 'in force'],
    ] as const)
      it(`about ${name} ${setting}`, async () => {
        write('none.yaml', '{}\n');
        const { objects } = await reportOf(`${COMPLETE}${name}: ${setting}\n`);
        expect(objects.find(({ section }) => section === name)?.verdict).to.equal(verdict);
        const { code, stdout } = await moveIn();
        expect(code).to.equal(0);
        const lacks = stdout
          .split('\n')
          .filter((line) => line.includes(name))
          .some((line) => /no effect|not known|are not spoken/.test(line));
        expect(lacks, stdout).to.equal(verdict !== 'in force');
      });

    it('about variables that are not set: what is not in force needs none, and all else does', async () => {
      write('none.yaml', '{}\n');
      const idle = `${COMPLETE}attackProtection:
  captcha: { active_provider_id: hcaptcha, hcaptcha: { site_key: a, secret: ##CAPTCHA_SECRET## } }
selfServiceProfiles: [{ name: p, description: "##PROFILE_TEXT##" }]
novelties: [{ key: "##NOVELTY##" }]
`;
      const report = await reportOf(idle);
      expect(report.objects.flatMap(({ needs }) => needs)).to.deep.equal([]);
      const moved = await moveIn();
      expect(moved.code, moved.stderr).to.equal(0);
      for (const variable of ['CAPTCHA_SECRET', 'PROFILE_TEXT', 'NOVELTY'])
        expect(moved.stdout).to.match(
          new RegExp(
            `warning: .*tenant\\.yaml:\\d+\\): the environment variable ${variable} is not set; it stays empty`,
          ),
        );
      // Where one of its places is in force, it is needed.
      const needed = idle.replace('friendly_name: Acme', 'friendly_name: "##NOVELTY##"');
      expect(
        (await reportOf(needed)).objects.flatMap(({ needs }) => needs.map((one) => one.variable)),
      ).to.deep.equal(['NOVELTY']);
      const refused = await moveIn();
      expect(refused.code).to.equal(1);
      expect(refused.stderr).to.contain('NOVELTY is not set').and.not.to.contain('CAPTCHA_SECRET');
    });
  });

  it('says what users will notice, where the export asks for it', async () => {
    const report = await reportOf(`
clients:
  - { name: Fed, client_id: f, app_type: spa, addons: { wsfed: {} } }
  - { name: Plain, client_id: p, app_type: spa, addons: {}, token_quota: null, jwks_uri: '' }
connections:
  - { name: odd, strategy: baidu, options: { client_id: a, client_secret: b } }
hooks: [{ name: h, script: 'x', triggerId: pre-user-registration, enabled: true }]
forms: [{ name: kyc, start: {} }]
guardianFactors: [{ name: duo, enabled: true }, { name: otp, enabled: true }]
triggers: { login-post-identifier: [{ action_name: A }], post-login: [] }
actions: [{ name: A, code: 'exports.onExecutePostLogin = (e, api) => api.prompt.render("f")', deployed: true }]
attackProtection: { captcha: { active_provider_id: hcaptcha }, breachedPasswordDetection: { enabled: false } }
tenant:
  session_cookie: { mode: non-persistent }
  flags: { enforce_client_authentication_on_passwordless_start: true, enable_dynamic_client_registration: true }
guardianFactorTemplates: [{ name: sms, enrollment_message: '{{code}}', verification_message: '{{code}}' }]
`);
    const absent = report.objects.filter(({ verdict }) => verdict === 'not in force').map(({ name }) => name);
    expect(absent).to.have.members([
      'Fed',
      'odd',
      'h',
      'kyc',
      'duo',
      'login-post-identifier',
      'A',
      'captcha',
    ]);
    expect(verdictOf(report, 'Plain')).to.equal('in force');
    expect(verdictOf(report, 'sms')).to.equal('in force');
    expect(report.objects.find(({ section }) => section === 'tenant')?.verdict).to.equal('in force');
    expect(verdictOf(report, 'breachedPasswordDetection')).to.equal('in force');
    expect(report.faults).to.deep.equal([]);
    expect(report.code).to.equal(2);
  });

  it('says nothing of a value without which nothing changes', async () => {
    const off = 'guardianFactors: [{ name: sms, enabled: false }, { name: otp, enabled: true }]';
    const text = (factors: string, provider: string) => `${COMPLETE}${factors}
guardianFactorProviders: [{ name: sms, provider: twilio }]
guardianPhoneFactorSelectedProvider: { provider: ${provider} }
databases: [{ name: users, strategy: auth0, options: { mfa: { active: false } } }]
pages: [{ name: error_page, html: '', show_log_link: false }, { name: password_reset, html: '' }]
migrations: {}
exclude: { rules: [], clients: [] }
`;
    const quiet = await reportOf(text(off, 'auth0'));
    expect(quiet.objects.filter(({ verdict }) => verdict !== 'in force')).to.deep.equal([]);
    expect(quiet.objects.map(({ section }) => section)).to.not.include('exclude');
    expect(quiet.code).to.equal(0);
    const needs = ({ objects }: Report) =>
      objects.flatMap((one) => one.needs.map(({ variable }) => variable));
    // The codes of the factor are sent, by Twilio or by an Action.
    const on = off.replace('false', 'true');
    expect(needs(await reportOf(text(on, 'auth0')))).to.include('TWILIO_ACCOUNT_SID');
    const byAction = await reportOf(text(on, 'phone-message-hook'));
    expect(needs(byAction)).to.deep.equal([]);
    expect(verdictOf(byAction, 'phone-message-hook')).to.equal('in force, differently');
    const asked = await reportOf(
      `${text(off, 'auth0').replace("html: ''", "html: '', url: 'https://acme.example/error'")}guardianPolicies: { policies: [all-applications] }\n`,
    );
    const absent = asked.objects.filter(({ verdict }) => verdict === 'not in force').map(({ name }) => name);
    expect(absent).to.have.members(['users', 'error_page']);
  });

  it('does not take what the configuration of the deploy tool leaves out for a part of the tenant', async () => {
    write('config.json', '{ "AUTH0_EXCLUDED": ["roles"] }');
    const report = await reportOf(`${COMPLETE}roles: [{ name: r }]\n`, { TENANT_CONFIG: 'config.json' });
    expect(report.objects.map(({ name }) => name)).to.have.members(['', 'Shop']);
    expect(report.code).to.equal(0);
  });

  it('names the packages that scripts need, and those that cannot work here', async () => {
    const login =
      "function login(email, password, callback) { const m = require('mongodb@3.1.4'); require('bcrypt'); }";
    const report = await reportOf(`${COMPLETE}
databases:
  - { name: own, strategy: auth0, options: { enabledDatabaseCustomization: true, customScripts: { login: "${login}" } } }
  - { name: unused, strategy: auth0, options: { enabledDatabaseCustomization: false, customScripts: { login: "${login}" } } }
rules:
  - { name: r, enabled: true, script: "function (user, context, callback) { require('request'); require('ms@2.0.0'); }" }
actions:
  - { name: A, code: 'exports.onExecutePostLogin = async () => {}', dependencies: [{ name: pg, version: 8.0.0 }] }
`);
    const saysOf = (name: string) =>
      report.objects
        .filter((one) => one.name === name)
        .flatMap(({ statements }) => statements.map(({ says }) => says));
    expect(saysOf('own').join())
      .to.contain('scripts that use mongodb fail: they have no connections of their own')
      .and.to.contain('scripts run in QuickJS')
      .and.not.contain('bcrypt');
    expect(saysOf('unused')).to.deep.equal([]);
    expect(saysOf('r').join())
      .to.contain('installed beside the server, where scripts read them: ms')
      .and.not.contain('request');
    expect(verdictOf(report, 'r')).to.equal('in force, differently');
    expect(verdictOf(report, 'A')).to.equal('not in force');
  });

  it('says of a connection that is not built in that, and nothing of its options', async () => {
    const report = await reportOf(`${COMPLETE}
connections: [{ name: odd, strategy: baidu, options: { client_id: a, client_secret: b, further: c } }]
`);
    expect(report.objects.find(({ name }) => name === 'odd')?.statements).to.have.length(1);
  });

  it('says what is different, with the decision', async () => {
    const report = await reportOf(`${COMPLETE}
rules: [{ name: r, script: 'function (user, context, callback) { callback(null, user, context); }', enabled: true }]
`);
    const rule = report.objects.find(({ name }) => name === 'r');
    expect(rule?.verdict).to.equal('in force, differently');
    expect(rule?.statements[0]?.decision).to.contain('understand/decisions/actions-scripts.md#');
    expect(report.code).to.equal(0);
  });

  it('names members and sections that it does not know', async () => {
    const report = await reportOf(`${COMPLETE}
organizations: [{ name: acme, colour: red }]
novelties: [{ name: n }]
`);
    const says = report.objects.flatMap(({ statements }) =>
      statements.map(({ at, says: what }) => `${at}: ${what}`),
    );
    expect(says.join('\n'))
      .to.match(/organizations\[0\]\.colour \(tenant\.yaml:6\): Gatehouse does not know this member/)
      .and.to.match(/novelties\[0\] \(tenant\.yaml:7\): Gatehouse does not know this section/);
  });

  it('reads the folder that the deploy tool writes, with the file of each member', async () => {
    write('out/tenant.json', '{ "friendly_name": "Acme" }');
    write('out/clients/Web.json', '{ "name": "Web", "app_type": "spa" }');
    const { code, stdout } = await run(['out', '--json']);
    expect(code).to.equal(2);
    expect(JSON.parse(stdout).objects[1].needs[0].at).to.contain('(out/clients/Web.json)');
  });

  it('lists what others have to do, with the address that users will see', async () => {
    const text = `
customDomains: [{ domain: login.acme.example, type: self_managed_certs, api_key: ${'k'.repeat(30)} }]
clients:
  - { name: HR, client_id: hr, app_type: regular_web, client_secret: ${'s'.repeat(40)}, addons: { samlp: {} } }
  - name: App
    client_id: app
    app_type: native
    callbacks: ['com.acme.app://old.eu.auth0.com/ios/com.acme.app/callback']
    mobile: { ios: { team_id: T1, app_bundle_identifier: com.acme.app } }
connections:
  - { name: google, strategy: google-oauth2, options: { client_id: a, client_secret: b } }
  - { name: corp, strategy: samlp, options: { signInEndpoint: 'https://idp.example/sso', metadataUrl: 'https://idp.example/md' } }
emailTemplates: [{ template: verify_email, enabled: true, from: 'Acme <hello@acme.example>', body: '{{ url }}' }]
resourceServers: [{ name: Orders, identifier: 'https://orders' }]
`;
    const valuesOf = ({ tasks }: Report) =>
      tasks.flatMap(({ tasks: all }) => all.flatMap(({ values }) => values)).join('\n');
    const stays = valuesOf(await reportOf(text));
    expect(stays)
      .to.contain('https://login.acme.example/login/callback\n')
      .and.to.contain('https://login.acme.example/samlp/metadata?connection=corp')
      .and.to.contain('https://login.acme.example/samlp/metadata/hr')
      .and.to.contain('com.acme.app://login.acme.example/ios/com.acme.app/callback')
      .and.to.contain('SPF and DKIM of acme.example');
    expect(stays).not.to.contain('issuer:');
    const moves = valuesOf(await reportOf(text, { BASE_URL: 'https://id.acme.example' }));
    expect(moves).to.contain('issuer: https://id.acme.example/');
  });

  it('asks for another sender of mail where it is the hosted service’s own', async () => {
    const { tasks } = await reportOf(`${COMPLETE}
connections:
  - { name: email, strategy: email, options: { email: { from: '{{ application.name }} <root@auth0.com>', body: '{{ code }}' } } }
emailTemplates: [{ template: verify_email, enabled: true, from: hello@auth0.com.example, body: '{{ url }}' }]
`);
    const senders = tasks.find(({ title }) => title === 'Senders to verify')?.tasks ?? [];
    expect(senders.find(({ where }) => where === 'root@auth0.com')?.task).to.contain(
      'an address of your own',
    );
    expect(senders.flatMap(({ values }) => values)).to.deep.equal(['SPF and DKIM of auth0.com.example']);
  });

  it('lists for others no API of the server itself, and no name that stands for a variable', async () => {
    const { tasks } = await reportOf(`${COMPLETE}
resourceServers:
  - { name: Own, identifier: 'https://##OLD_DOMAIN##/me/' }
  - { name: Orders, identifier: 'https://##OLD_DOMAIN##/orders' }
`);
    const apis = tasks.find(({ title }) => title === 'APIs that verify access tokens');
    expect(apis?.tasks.map(({ where }) => where)).to.deep.equal(['Orders (https://##OLD_DOMAIN##/orders)']);
  });

  it('writes one HTML file that loads nothing, in which names of the export are text', async () => {
    const name = '<img src=x onerror=alert(1)>"\'&';
    const { code } = await check(
      `clients: [{ name: ${JSON.stringify(name)}, app_type: spa }]`,
      {},
      '--html',
      'r.html',
    );
    expect(code).to.equal(2);
    const html = readFileSync(join(cwd, 'r.html'), 'utf8');
    expect(html).to.contain('&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;');
    expect(html)
      .not.to.contain('<img')
      .and.not.to.match(/<script|<link|src=["']|https?:\/\/(?!login\.example)/);
    expect(html).to.contain("default-src 'none'");
  });

  it('writes an HTML file that fits a phone: what to do is open, long lists are closed until a link leads into them', async () => {
    const long = 'a-very-long-name-without-a-place-to-break-it'.repeat(3);
    const clients = Array.from({ length: 9 }, (_, n) => ({ name: `${long} ${n}`, app_type: 'regular_web' }));
    const rule = { name: 'r', script: 'function (u, c, cb) { cb(null, u, c); }', enabled: true };
    await check(
      JSON.stringify({
        clients,
        rules: [rule],
        hooks: [{ name: long, script: 'x' }],
        organizations: [{ display_name: long }],
      }),
      {},
      '--html',
      'r.html',
    );
    const browser = await launchBrowser(undefined, { draws: false });
    try {
      const context = await browser.newContext({ viewport: NARROWEST });
      const page = await context.newPage();
      await page.goto(pathToFileURL(join(cwd, 'r.html')).href);
      const sections = () =>
        page
          .locator('section > details')
          .evaluateAll((all) =>
            all.map((one) => `${one.querySelector('h2')?.textContent}: ${one.hasAttribute('open')}`),
          );
      expect(await sections()).to.deep.equal([
        'Cannot be taken as it is: true',
        'Values to set: true',
        'Not in force: what users will notice: true',
        'In force, differently: false',
        'To do at others: true',
        'All objects (12): false',
      ]);
      await page.goto(`${pathToFileURL(join(cwd, 'r.html')).href}#D1`);
      expect((await sections())[3]).to.equal('In force, differently: true');
      const tooWide = await page.evaluate(`(() => {
        for (const one of document.querySelectorAll('details')) one.open = true;
        const edge = document.documentElement.clientWidth;
        return [...document.querySelectorAll('body *')]
          .filter((one) => one.getBoundingClientRect().right > edge || one.scrollWidth > edge)
          .map((one) => one.outerHTML.slice(0, 99));
      })()`);
      expect(tooWide).to.deep.equal([]);
    } finally {
      await browser.close();
    }
  });

  it('shows no secret of the export', async () => {
    const secret = 'hunter2-hunter2-hunter2-hunter2-hunter2';
    const { stdout } = await check(
      `clients: [{ name: W, client_id: w, client_secret: ${secret}, app_type: regular_web }]\nemailProvider: { name: mailgun, credentials: { api_key: ${secret} } }\n`,
      {},
      '--json',
    );
    expect(stdout).not.to.contain(secret);
  });
});
