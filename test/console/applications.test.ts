// The console's application pages.
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { snippetsOf } from '../../src/capabilities/quickstarts/snippets.ts';
import { STARTERS } from '../../src/capabilities/quickstarts/starters.ts';
import { KINDS } from '../../src/features/console/applications/kinds.ts';
import type { Answer } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { API } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { expectFaultAt, sendForm } from './forms.ts';

const HOSTILE = `"><img src=x onerror=alert(1)>'); {{ 7919 | times: 6101 }}`;
const NEW = '/console/new-application';

describe('applications in the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  beforeEach(async () => {
    server = await startConsole();
    owner = await openConsole(server);
  });
  afterEach(() => server.stop());

  const pathOf = ({ location }: Answer) => new URL(location).pathname;
  const idOf = (made: Answer) => decodeURIComponent(pathOf(made).split('/')[3] ?? '');
  const make = async (kind: string, typed: Record<string, string> = {}): Promise<Answer> => {
    const made = await sendForm(owner, await owner.get(NEW), NEW, { kind, ...typed });
    expect(made.status, made.text).to.equal(303);
    return made;
  };
  const clientOf = async (made: Answer) => server.store.collection('clients').get(idOf(made));
  const grantsOf = async (id: string) =>
    (await server.store.collection('clientGrants').list({ limit: 1000 })).records.filter(
      ({ client_id }) => client_id === id,
    );

  it('are created from a name and a kind, with the settings that SDKs need, and enabled for the databases', async () => {
    const spa = await make('spa', { name: 'Harbour Books', callback: 'https://books.example.test/in' });
    expect(await clientOf(spa)).to.deep.include({
      name: 'Harbour Books',
      app_type: 'spa',
      token_endpoint_auth_method: 'none',
      callbacks: ['https://books.example.test/in'],
      web_origins: ['https://books.example.test'],
      grant_types: ['authorization_code', 'refresh_token'],
      oidc_conformant: true,
    });
    const [database] = (await server.store.collection('connections').list({ limit: 100 })).records;
    expect(database?.enabled_clients).to.include(idOf(spa));
    const page = await owner.get(spa.location);
    expect(page.text).to.contain(idOf(spa)).and.to.contain('https://books.example.test/in');
    expect(page.text).to.contain('@auth0/auth0-spa-js').and.to.contain(new URL(server.url).host);
    const machine = await make('non_interactive', { name: 'Nightly' });
    expect(await clientOf(machine)).to.deep.include({ grant_types: ['client_credentials'], callbacks: [] });
    expect((await owner.get('/console/applications')).text)
      .to.contain('Harbour Books')
      .and.to.contain('Nightly');
    const found = await owner.get('/console/applications?text=nightly');
    expect(found.text).to.contain('Nightly').and.not.to.contain('Harbour Books');
  });

  it('are not created from invalid values, which the form shows again with the fault', async () => {
    const count = async () => (await server.store.collection('clients').list({ limit: 1000 })).records.length;
    const before = await count();
    const refused = await sendForm(owner, await owner.get(NEW), NEW, { kind: 'spa', name: 'a <b>' });
    expect(refused.status).to.equal(400);
    expect(refused.text).to.contain('value="a &lt;b&gt;"').and.to.contain('role="alert"');
    expectFaultAt(refused, 'name', 'does not match');
    const callback = 'no address';
    const lost = await sendForm(owner, await owner.get(NEW), NEW, { kind: 'spa', name: 'Lost', callback });
    expectFaultAt(lost, 'callback', 'This is not a valid address');
    expect(lost.text).to.contain('value="no address"');
    expect((await owner.post(NEW, { kind: 'admin', name: 'x' })).status).to.equal(400);
    expect((await owner.post(NEW, { kind: 'spa', name: '' })).status).to.equal(400);
    expect(await count()).to.equal(before);
  });

  it('switch connections on and off', async () => {
    const id = idOf(await make('spa'));
    const at = `/console/applications/${id}/connections`;
    const page = await owner.get(at);
    expect(page.text).to.contain('aria-checked="true"');
    expect((await sendForm(owner, page, at)).status).to.equal(303);
    const [database] = (await server.store.collection('connections').list({ limit: 100 })).records;
    expect(database?.enabled_clients).not.to.include(id);
    expect(page.text).to.contain(`href="/console/connections/${database?.id}"`);
    expect((await sendForm(owner, await owner.get(at), at)).status).to.equal(303);
    const [again] = (await server.store.collection('connections').list({ limit: 100 })).records;
    expect(again?.enabled_clients).to.include(id);
    expect((await owner.post(at, { connection: 'con_none', on: 'true' })).status).to.equal(404);
  });

  it('get a client grant with all scopes when an API is switched on', async () => {
    const id = idOf(await make('non_interactive'));
    const at = `/console/applications/${id}/apis`;
    expect((await owner.post(at, { api: API, on: 'true' })).status).to.equal(303);
    expect((await owner.post(at, { api: API, on: 'true' })).status).to.equal(303);
    const [grant, ...others] = await grantsOf(id);
    expect(others).to.deep.equal([]);
    const api = (await server.store.collection('resourceServers').list({ limit: 100 })).records.find(
      ({ identifier }) => identifier === API,
    );
    expect(grant).to.deep.include({ audience: API, scope: api?.scopes.map(({ value }) => value) });
    const quickstart = await owner.get(`/console/applications/${id}`);
    expect(quickstart.text).to.contain(API).and.to.contain('clientCredentialsGrant');
    expect((await owner.post(at, { api: API, on: 'false' })).status).to.equal(303);
    expect(await grantsOf(id)).to.deep.equal([]);
    expect((await owner.post(at, { api: 'https://none.example.test/', on: 'true' })).status).to.equal(404);
  });

  it('of third parties, and those that are APIs, get a grant for users when an API is switched on', async () => {
    const id = idOf(await make('regular_web'));
    const at = `/console/applications/${id}/apis`;
    const become = (change: object) =>
      server.store.collection('clients').update(id, (client) => ({ ...client, ...change }));
    const made = async () => {
      await owner.post(at, { api: API, on: 'true' });
      const [grant] = await grantsOf(id);
      await owner.post(at, { api: API, on: 'false' });
      return [grant?.subject_type, (await grantsOf(id)).length];
    };
    expect((await owner.get(at)).text)
      .to.contain('tokens of its own')
      .and.not.to.contain('tokens of users');
    expect(await made()).to.deep.equal(['client', 0]);
    await owner.post(at, { api: API, on: 'true' });
    await become({ is_first_party: false });
    // What it has for another subject is said, and can be taken back.
    expect((await owner.get(at)).text)
      .to.contain('tokens of users')
      .and.to.contain('for itself');
    await owner.post(at, { api: API, on: 'false' });
    expect(await made()).to.deep.equal(['user', 0]);
    await become({ app_type: 'non_interactive' });
    expect(await made()).to.deep.equal(['client', 0]);
    await become({ app_type: 'resource_server', resource_server_identifier: API });
    expect(await made()).to.deep.equal(['user', 0]);
  });

  it('that are APIs are shown as such, with the exchange of a token that they received, and no login', async () => {
    const id = idOf(await make('non_interactive'));
    await owner.post(`/console/applications/${id}/apis`, { api: API, on: 'true' });
    const change = { app_type: 'resource_server', resource_server_identifier: API } as const;
    await server.store.collection('clients').update(id, (client) => ({ ...client, ...change }));
    const page = (await owner.get(`/console/applications/${id}`)).text;
    expect(page).to.contain('grant-type:token-exchange').and.to.contain(`audience=${API}`);
    for (const none of ['express-openid-connect', `/${id}/connections`, 'a login cannot return'])
      expect(page).not.to.contain(none);
    expect((await owner.get('/console/applications')).text).to.match(/<td[^>]*>API<\/td>/);
  });

  it("can only be changed by roles that may do so, with the console's own forms", async () => {
    const id = idOf(await make('non_interactive'));
    const viewer = await openConsole(server, 'viewer');
    const at = `/console/applications/${id}`;
    expect((await viewer.get(at)).status).to.equal(200);
    expect((await viewer.get(`${at}/apis`)).text).not.to.contain('role="switch"');
    expect((await viewer.get(NEW)).status).to.equal(403);
    for (const path of [NEW, `${at}/connections`, `${at}/apis`]) {
      const form = { kind: 'spa', name: 'x', api: API, connection: 'con_1', on: 'true' };
      expect((await viewer.post(path, form)).status, path).to.equal(403);
      const forged = await owner.agent.request(path, { form: { ...form, _csrf: 'guessed' } });
      expect(forged.status, path).to.equal(403);
    }
    const support = await openConsole(server, 'support');
    expect((await support.get(at)).status).to.equal(403);
    expect(await grantsOf(id)).to.deep.equal([]);
  });

  it('show no secret in a quickstart, and show hostile values as text', async () => {
    const { client_secret: secret = 'none' } = (await server.store.collection('clients').get('web')) ?? {};
    expect((await owner.get('/console/applications/web')).text).not.to.contain(secret);
    await server.store.collection('clients').update('web', (one) => ({
      ...one,
      name: HOSTILE,
      callbacks: [`https://a.example.test/${HOSTILE}`],
      allowed_logout_urls: [HOSTILE],
    }));
    for (const path of ['', '/web', '/web/connections', '/web/apis']) {
      const page = await owner.get(`/console/applications${path}`);
      expect(page.status, path).to.equal(200);
      expect(page.text, path).not.to.contain('<img').and.not.to.contain('48313819');
    }
    expect((await owner.get('/console/applications/nobody')).status).to.equal(404);
  });
});

describe('quickstart programs', () => {
  const values = {
    domain: 'login.example.test',
    issuer: 'https://login.example.test/',
    clientId: 'my-client',
    callback: 'https://app.example.test/in',
    afterLogout: 'https://app.example.test',
    audience: 'https://api.example.test/',
  };
  /** Those of the console, and those of `gatehouse init`. */
  const programs = (given: typeof values) => [
    ...KINDS.flatMap((kind) => snippetsOf(kind, given)),
    ...STARTERS.flatMap((starter) => starter.programs.map((program) => program(given))),
  ];
  const all = KINDS.flatMap((kind) => snippetsOf(kind, values).map((snippet) => ({ kind, ...snippet })));

  // docs/reference/sdks.md says how the programs for the other packages were tried.
  const { dependencies, devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
  const installed = Object.keys({ ...dependencies, ...devDependencies });
  const isInstalled = ({ package: name }: { package: string | undefined }) =>
    name !== undefined && installed.includes(name);
  for (const { kind, package: name = '', code } of all.filter(isInstalled))
    it(`use existing members of ${name}, for ${kind}`, async () => {
      // For a package with several entries, the one that the program imports.
      const [, entry = name] = new RegExp(`from '(${name}[^']*)'`).exec(code) ?? [];
      const module = (await import(entry ?? '')) as Record<string, unknown>;
      const read = (object: unknown, member: string) => (object as Record<string, unknown>)[member];
      for (const [, members = '', from = ''] of code.matchAll(/import \{ ([^}]+) \} from '([^']+)'/g))
        for (const member of members.split(', '))
          expect(read(await import(from), member), member).to.be.a('function');
      expect(code).to.contain(`'my-client'`);
      // Its hook only works inside a page; the tests of published SDKs run it in a browser.
      if (name === '@auth0/auth0-react') return;
      const usesAll = code.includes('import * as ');
      const [, type] = /new (?:auth0\.)?(\w+Client|WebAuth|Auth0Lock)\(/.exec(code) ?? [];
      const owner = name === 'auth0-js' ? module.default : module;
      const made = read(module, 'Auth0Client') ?? (type && read(owner, type));
      const holder = usesAll ? module : read(made, 'prototype');
      if (name === 'auth0') {
        const { ManagementClient } = await import('auth0');
        const client = new ManagementClient({
          domain: 'login.example.test',
          clientId: 'a',
          clientSecret: 'b',
        });
        expect(client.users.list).to.be.a('function');
        return;
      }
      const called = [...code.matchAll(/\b(?:client|webAuth|lock|oauth)\.(\w+)\(/g)].map(
        ([, member = '']) => member,
      );
      expect(called).not.to.deep.equal([]);
      for (const member of called) expect(read(holder, member), member).to.be.a('function');
    });

  it('are valid programs for any values, and contain no secret', async () => {
    const { transform } = await import('esbuild');
    // Languages without a parser here: no value can end its string.
    const withoutTexts = (code: string) =>
      code
        .replaceAll(/'(?:[^'\\\n\u2028]|\\.)*'/g, "''")
        .replaceAll(/"(?:[^"\\\n]|\\.)*"/g, '""')
        .replace(/--port \d+/, '');
    const plain = new Map(all.map(({ title, code }) => [title, withoutTexts(code)]));
    const nasty = `it's \\ "a" \` $\{x} \u2028 </script>`;
    const odd = Object.fromEntries(Object.keys(values).map((name) => [name, nasty])) as typeof values;
    for (const given of [values, odd])
      for (const { title, code, language } of programs(given)) {
        if (language === 'js' || language === 'jsx' || language === 'ts')
          await transform(code, { loader: language, format: 'esm' });
        else if (language !== 'sh') expect(withoutTexts(code), code).to.equal(plain.get(title));
      }
    expect(all.map(({ code }) => code).join('\n')).not.to.match(/secret['"]?:\s*'/i);
    expect(all.map(({ package: name }) => name)).to.include.members([
      '@auth0/auth0-auth-js',
      '@auth0/auth0-react',
      '@auth0/auth0-spa-js',
      '@auth0/nextjs-auth0',
      'auth0',
      'auth0-js',
      'auth0-lock',
      'oauth4webapi',
      'openid-client',
    ]);
  });
});
