// Connections in the console: listing and changing them, roles, "Try connection", and scripts.
import { expect } from 'chai';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { tenant, USER } from '../support/flows.ts';
import { type OAuth2Provider, optionsFor, startProvider } from '../support/oauth2-provider.ts';
import type { TestServer } from '../support/server.ts';
import { expectFaultAt } from './forms.ts';

const HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(2)>';
const PATH = '/console/connections';
const name = { identifier: { active: true }, signup: { status: 'optional' } };
const FLEXIBLE = {
  attributes: {
    email: { ...name, verification_method: 'otp' },
    phone_number: name,
    username: { ...name, validation: { min_length: 3, max_length: 9, allowed_types: { email: false } } },
  },
  precedence: ['username', 'email', 'phone_number'],
  authentication_methods: { phone_otp: { enabled: true }, password: { api_behavior: 'optional' } },
  password_options: { complexity: { min_length: 12, character_types: ['number'] } },
};

describe('connections in the console', () => {
  let provider: OAuth2Provider;
  let server: TestServer;
  let owner: ConsoleAgent;
  let viewer: ConsoleAgent;
  let support: ConsoleAgent;

  before(async () => {
    provider = await startProvider();
    server = await startConsole({
      tenant: {
        ...tenant,
        connections: [
          { name: 'acme', strategy: 'oauth2', enabled_clients: ['web'], options: optionsFor(provider) },
          {
            name: 'hostile',
            display_name: HOSTILE,
            strategy: 'oauth2',
            enabled_clients: [],
            options: optionsFor(provider, { scope: HOSTILE }),
          },
          { name: 'works', strategy: 'samlp', options: { signInEndpoint: 'https://idp.example.test/sso' } },
          { name: 'codes', strategy: 'email', options: {} },
        ],
        databases: [...tenant.databases, { name: 'flexible', enabled_clients: [], options: FLEXIBLE }],
      },
    });
    owner = await openConsole(server);
    viewer = await openConsole(server, 'viewer');
    support = await openConsole(server, 'support');
  });
  after(async () => {
    await server?.stop();
    await provider?.stop();
  });
  beforeEach(() => {
    provider.user = { id: 42, email: 'grace@upstream.test', name: 'Grace' };
    provider.token = undefined;
    provider.profile = undefined;
  });

  const recordOf = async (name: string) => {
    const [found] = await server.store.collection('connections').findBy('name', name);
    if (found === undefined) throw new Error(`there is no ${name}`);
    return found;
  };
  const pathOf = async (name: string) => `${PATH}/${(await recordOf(name)).id}`;

  it('are listed by strategy, with hostile names as text', async () => {
    const { status, text } = await owner.get(PATH);
    expect(status).to.equal(200);
    for (const name of ['acme', 'works', 'codes']) expect(text).to.contain(name);
    expect(text).to.not.contain('<script>alert');
    expect(text).to.contain('&lt;script&gt;alert(1)');
    expect((await owner.get(`${PATH}?q=wor`)).text)
      .to.contain('works')
      .and.not.contain('>acme<');
  });

  it('offer every available strategy', async () => {
    const { text } = await owner.get(`${PATH}/new`);
    for (const strategy of ['auth0', 'oauth2', 'oidc', 'samlp', 'ad', 'github', 'email'])
      expect(text).to.contain(`${PATH}/new/${strategy}"`);
    expect((await owner.get(`${PATH}/new/nothing`)).status).to.equal(404);
  });

  it('are created with a form of their strategy, which shows faults beside the entered values', async () => {
    const form = {
      name: 'made',
      'option.client_id': 'their-client',
      'option.discovery_url': 'http://idp.example.test',
    };
    const refused = await owner.post(`${PATH}/new/oidc`, form);
    expect(refused.status).to.equal(400);
    expect(refused.text).to.contain('must be an https address').and.contain('value="their-client"');
    expectFaultAt(refused, 'option-discovery_url', 'must be an https address');
    const named = await owner.post(`${PATH}/new/oidc`, { ...form, name: 'no name' });
    expectFaultAt(named, 'name', 'does not match');
    const taken = await owner.post(`${PATH}/new/email`, { name: 'acme' });
    expectFaultAt(taken, 'name', 'already exists');
    const unread = await owner.post(`${PATH}/new/oidc`, { ...form, 'option.attribute_map': '{' });
    expectFaultAt(unread, 'option-attribute_map', 'Line 1, column 2');
    expect(unread.text).to.contain('<details class="further-options" open>');
    const made = await owner.post(`${PATH}/new/oidc`, {
      ...form,
      'option.discovery_url': 'https://idp.example.test',
      'option.client_secret': 'their-secret',
    });
    expect(made.status).to.equal(303);
    const { options } = await recordOf('made');
    expect(options).to.include({ client_id: 'their-client', client_secret: 'their-secret' });
    expect(Object.keys(options)).to.have.members(['client_id', 'client_secret', 'discovery_url']);
  });

  it('keep unchanged options and secrets, and show no secret', async () => {
    const path = await pathOf('acme');
    const before = (await recordOf('acme')).options;
    const page = await owner.get(path);
    expect(page.text).to.not.contain('upstream-secret');
    expect(page.text).to.contain(`${server.url}/login/callback`);
    const form = { ...fieldsOf(page.text), 'option.client_id': 'another', display_name: 'Acme' };
    expect((await owner.post(path, form)).status).to.equal(303);
    const after = await recordOf('acme');
    expect(after.options).to.deep.equal({ ...before, client_id: 'another' });
    expect(after.display_name).to.equal('Acme');
    await owner.post(path, {
      ...form,
      'option.client_id': 'gatehouse',
      'option.client_secret': 'next-secret',
    });
    expect((await recordOf('acme')).options).to.include({ client_secret: 'next-secret' });
    await owner.post(path, {
      ...form,
      'option.client_id': 'gatehouse',
      'option.client_secret': 'upstream-secret',
    });
  });

  it('of databases keep settings of identifiers, codes and passwords, and change them as entered', async () => {
    const path = await pathOf('flexible');
    const said = async () => {
      const options: Record<string, unknown> = (await recordOf('flexible')).options;
      return Object.fromEntries(Object.keys(FLEXIBLE).map((option) => [option, options[option]]));
    };
    const before = await said();
    const { password_options: _, ...asWritten } = FLEXIBLE;
    expect(before).to.deep.include(asWritten);
    expect(before).to.have.nested.property('password_options.complexity.min_length', 12);
    for (const [language, help] of [
      ['en', 'The names that users log in with'],
      ['de', 'Die Namen, mit denen sich Nutzer anmelden'],
      ['ar', 'الأسماء التي يسجل بها المستخدمون الدخول'],
    ] as const) {
      const { text } = await owner.get(path, { 'accept-language': language });
      expect(text).to.contain(help);
      for (const option of Object.keys(FLEXIBLE)) expect(text).to.contain(`option-${option}-help"`);
    }
    const form = fieldsOf((await owner.get(path)).text);
    expect((await owner.post(path, form)).status).to.equal(303);
    // The form contains what applies though it was not set, and that is not written.
    expect(await said()).to.deep.equal(before);
    const attributes = { ...FLEXIBLE.attributes, phone_number: { ...name, profile_required: true } };
    const typed = { ...form, 'option.attributes': JSON.stringify(attributes), display_name: 'Flexible' };
    const refused = await owner.post(path, typed);
    expect(refused.status).to.equal(400);
    expect(refused.text).to.contain('attribute phone_number must also be required on signup');
    expect(await said()).to.deep.equal(before);
    const phone_number = { ...name, profile_required: true, signup: { status: 'required' } };
    const precedence = ['phone_number', 'email'];
    const right = {
      ...typed,
      'option.attributes': JSON.stringify({ ...attributes, phone_number }),
      'option.precedence': precedence.join('\r\n'),
    };
    expect((await owner.post(path, right)).status).to.equal(303);
    const changed = { ...FLEXIBLE.attributes, phone_number };
    expect(await said()).to.deep.equal({ ...before, attributes: changed, precedence });
    expect((await recordOf('flexible')).display_name).to.equal('Flexible');
  });

  it('show the addresses that a SAML provider needs', async () => {
    const { text } = await owner.get(await pathOf('works'));
    expect(text).to.contain(`${server.url}/login/callback?connection&#61;works`.replace('&#61;', '='));
    expect(text).to.contain(`${server.url}/samlp/metadata?connection=works`);
    expect(text).to.contain(':works');
    expect(text).to.contain('signingCert');
  });

  it('are enabled for applications, changing only those of the form', async () => {
    const path = await pathOf('codes');
    const form = { 'was.spa': 'false', 'application.spa': 'true', 'was.web': 'false' };
    expect((await owner.post(`${path}/applications`, form)).status).to.equal(303);
    expect((await recordOf('codes')).enabled_clients).to.deep.equal(['spa']);
    const { text } = await owner.get(`${path}/applications`);
    expect(text).to.match(/name="application\.spa" value="true" checked/);
    await owner.post(`${path}/applications`, { 'was.spa': 'true' });
    expect((await recordOf('codes')).enabled_clients).to.deep.equal([]);
  });

  it('are deleted after a warning', async () => {
    await owner.post(`${PATH}/new/email`, { name: 'doomed' });
    const path = await pathOf('doomed');
    expect((await owner.get(`${path}/delete`)).text).to.contain('Delete doomed?');
    expect((await owner.post(`${path}/delete`)).status).to.equal(303);
    expect((await owner.get(path)).status).to.equal(404);
  });

  it("are limited to roles that may see or change them, and to the console's own forms", async () => {
    const path = await pathOf('acme');
    const seen = await viewer.get(path);
    expect(seen.status).to.equal(200);
    expect(seen.text).to.contain('fieldset class="bare" disabled').and.not.contain('upstream-secret');
    for (const address of [`${PATH}/new`, `${PATH}/new/oidc`, `${path}/try`, `${path}/delete`])
      expect((await viewer.get(address)).status, address).to.equal(403);
    for (const address of [path, `${path}/try`, `${path}/delete`, `${path}/applications`]) {
      expect((await viewer.post(address, { display_name: 'x' })).status, address).to.equal(403);
      const forged = await owner.agent.request(address, {
        form: { display_name: 'x', _csrf: 'a'.repeat(43) },
      });
      expect(forged.status, address).to.equal(403);
    }
    for (const address of [PATH, path, `${path}/scripts/fetchUserProfile`, `${PATH}/new`])
      expect((await support.get(address)).status, address).to.equal(403);
    expect((await recordOf('acme')).display_name).to.not.equal('x');
  });

  describe('trying one', () => {
    /** Begins a trial. @returns the page, and the address of the provider that it links to. */
    const begin = async (name: string) => {
      const page = await owner.post(`${await pathOf(name)}/try`);
      expect(page.status).to.equal(200);
      const [, href = ''] = /class="button primary" href="([^"]+)" rel/.exec(page.text) ?? [];
      return { page, href: href.replaceAll('&amp;', '&') };
    };
    /**
     * Logs in at the provider, and follows its response to the callback.
     * @returns the address that the callback redirects to.
     */
    const comeBack = async (href: string, as = owner) => {
      const gone = await fetch(href, { redirect: 'manual' });
      const back = await as.agent.get(gone.headers.get('location') ?? '');
      expect(back.status).to.equal(303);
      return back.location;
    };
    const everything = async () => ({
      users: await server.store.collection('users').count(),
      artifacts: await server.store.collection('artifacts').count(),
      identities: await server.store.collection('identities').count(),
    });

    it('runs a real login at the provider, shows each step, and creates nothing', async () => {
      const before = await everything();
      const { page, href } = await begin('acme');
      expect(href).to.contain(`${provider.url}/authorize?`);
      expect(page.text).to.contain(`${provider.url}/authorize`).and.contain('redirect_uri');
      const tried = await owner.get(await comeBack(href));
      expect(tried.status).to.equal(200);
      for (const step of ['redirect', 'answer', 'request', 'script', 'profile'])
        expect(tried.text).to.contain(`<li class="${step}">`);
      expect(tried.text).to.contain('grace@upstream.test').and.contain('The login succeeded');
      expect(tried.text).to.contain(`POST ${provider.url}/token`);
      expect(tried.text).to.not.match(/upstream-secret|token-\d|refresh-\d|code-\d/);
      expect(await everything()).to.deep.equal(before);
    });

    it('shows the outcome once', async () => {
      const { href } = await begin('acme');
      const at = await comeBack(href);
      expect((await owner.get(at)).status).to.equal(200);
      expect((await owner.get(at)).status).to.equal(400);
    });

    it('shows the outcome only to the session that began it, and other sessions do not use it up', async () => {
      const { href } = await begin('acme');
      const editor = await openConsole(server, 'editor');
      const at = await comeBack(href, editor);
      expect((await editor.get(at)).status).to.equal(400);
      const again = await openConsole(server);
      expect((await again.get(at)).status).to.equal(400);
      expect((await owner.get(at)).text).to.contain('The login succeeded');
    });

    it('accepts a state for one response', async () => {
      const { href } = await begin('acme');
      const gone = await fetch(href, { redirect: 'manual' });
      const back = gone.headers.get('location') ?? '';
      expect((await owner.agent.get(back)).status).to.equal(303);
      expect((await owner.agent.get(back)).status).to.equal(400);
    });

    it('shows a failure at its step', async () => {
      provider.token = (response) =>
        response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}');
      const { href } = await begin('acme');
      const tried = await owner.get(await comeBack(href));
      expect(tried.text).to.contain('The login failed').and.contain('invalid_client');
      expect(tried.text).to.contain('<li class="error">').and.not.contain('<li class="profile">');
    });

    it('shows a hostile profile as text', async () => {
      provider.user = { id: HOSTILE, name: HOSTILE, email: HOSTILE };
      const { href } = await begin('acme');
      const tried = await owner.get(await comeBack(href));
      expect(tried.text)
        .to.contain('&lt;script&gt;')
        .and.not.contain('<script>alert')
        .and.not.contain('<img src=x');
    });

    it('reports an unfinished connection', async () => {
      const { page, href } = await begin('works');
      expect(href).to.equal('');
      expect(page.text).to.contain('<li class="error">');
    });

    it('checks an identifier and a password without logging in, and counts wrong ones as any login does', async () => {
      const path = await pathOf('users');
      const before = await everything();
      const tryWith = (password: string) => owner.post(`${path}/try`, { identifier: USER.email, password });
      const right = await tryWith(USER.password);
      expect(right.text).to.contain('The login succeeded').and.not.contain(USER.password);
      expect(await everything()).to.deep.equal(before);
      for (let n = 0; n < 10; n++)
        expect((await tryWith(`Wrong-${n}-wrong`)).text).to.contain('invalid_grant');
      expect((await tryWith(USER.password)).text).to.contain('too_many_attempts');
      const { records } = await server.store.collection('logs').list({ limit: 500 });
      expect(JSON.stringify(records)).to.contain('"fp"').and.not.contain('Wrong-1-wrong');
    });

    it('sends no code', async () => {
      expect((await owner.get(`${await pathOf('codes')}/try`)).text).to.not.contain(
        '<form class="card fields"',
      );
      expect((await owner.post(`${await pathOf('codes')}/try`)).status).to.equal(400);
    });
  });

  describe('scripts', () => {
    const edit = async (more: Record<string, string>) =>
      owner.post(`${await pathOf('hostile')}/scripts/fetchUserProfile`, {
        source: `function (accessToken, context, callback) {
          console.log(${JSON.stringify(HOSTILE)}, configuration.key, accessToken);
          callback(null, { user_id: 'u1', name: ${JSON.stringify(HOSTILE)}, given: context.a });
        }`,
        'argument.accessToken': '"a token"',
        'argument.context': '{"a":"given"}',
        ...more,
      });

    it('run once as entered, and show result, output and usage as text', async () => {
      const { text, status } = await edit({ order: 'run' });
      expect(status).to.equal(200);
      expect(text).to.contain('given').and.contain('/ 20000').and.contain('info: &lt;script&gt;');
      expect(text).to.not.contain('<script>alert').and.not.contain('<img src=x');
      const { options } = await recordOf('hostile');
      expect(JSON.stringify(options)).to.not.contain('configuration.key');
    });

    it('show their failure, but not their secrets', async () => {
      const source =
        "function (a, c, callback) { console.log('upstream-secret'); callback(new Error('no: upstream-secret')); }";
      const { text } = await edit({ order: 'run', source });
      expect(text).to.contain('no: ***').and.not.contain('upstream-secret&#39;)); }</textarea>upstream');
      expect(text).to.contain('id="run-outcome" tabindex="-1" autofocus');
      expect(text.slice(text.indexOf('run-outcome'))).to.not.contain('upstream-secret');
    });

    it('require arguments in JSON', async () => {
      const refused = await edit({ order: 'run', 'argument.context': '{' });
      expect(refused.status).to.equal(400);
      expectFaultAt(refused, 'argument-context', 'Line 1, column 2');
    });

    it('are saved, keeping the other options', async () => {
      const before = (await recordOf('hostile')).options;
      expect((await edit({ order: 'save' })).status).to.equal(303);
      const { options } = await recordOf('hostile');
      const { scripts, ...rest } = options;
      expect(rest).to.deep.equal((({ scripts: _, ...others }) => others)(before));
      expect((scripts as Record<string, string>).fetchUserProfile).to.contain('configuration.key');
    });

    it('exist only for strategies that have them', async () => {
      expect((await owner.get(`${await pathOf('hostile')}/scripts/login`)).status).to.equal(404);
      expect((await owner.get(`${await pathOf('works')}/scripts/fetchUserProfile`)).status).to.equal(404);
    });
  });
});

/** Returns what the forms of a page would send, without their token. */
function fieldsOf(html: string): Record<string, string> {
  const plain = (text: string) =>
    text
      .replaceAll('&#34;', '"')
      .replaceAll('&#39;', "'")
      .replaceAll('&lt;', '<')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&');
  const inputs = [...html.matchAll(/<input[^>]*>/g)]
    .map(([input]) => input)
    .filter((input) => !input.includes('type="checkbox"') || /\schecked/.test(input))
    .map((input) => [/ name="([^"]+)"/.exec(input)?.[1] ?? '', / value="([^"]*)"/.exec(input)?.[1] ?? '']);
  const areas = [...html.matchAll(/<textarea[^>]*name="([^"]+)"[^>]*>\n?([\s\S]*?)<\/textarea>/g)];
  const all = [...inputs, ...areas.map(([, name = '', text = '']) => [name, text])];
  const { _csrf, ...fields } = Object.fromEntries(all.map(([name = '', text = '']) => [name, plain(text)]));
  return fields;
}
