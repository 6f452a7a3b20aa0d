// The console's pages generated from the Management API. New resources are tested without a change here.
import { expect } from 'chai';
import { fillPath, placesOf } from '../../src/features/console/resources/declared.ts';
import { operationsOf } from '../../src/features/console/resources/operations.ts';
import type { CallRules } from '../../src/features/management/call.ts';
import { scopesOf } from '../../src/features/management/roles/administrator-roles.ts';
import { type Answer, readForm } from '../support/agent.ts';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { API, tenant, USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { fieldsOf, sendForm } from './forms.ts';

/** Limits for a test that opens every page. */
const WIDE = { capacity: 1e6, perMinute: 1e6 };
const PLACES = placesOf();

describe('every resource in the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  before(async () => {
    server = await startConsole({
      tenant: { ...tenant, attackProtection: { rateLimits: { console: WIDE, hosted: WIDE } } },
    });
    owner = await openConsole(server);
  });
  after(() => server.stop());

  for (const place of PLACES.values()) {
    const { path, read } = place;
    const at = fillPath(path, {
      ...Object.fromEntries([...path.matchAll(/:(\w+)/g)].map(([, name]) => [name, 'unknown1'])),
    });
    if (read !== undefined)
      it(`has a page: ${path}`, async () => {
        const page = await owner.get(`/console/resources${at}`);
        expect(page.status, page.text).to.be.oneOf(path.includes(':') ? [200, 400, 404] : [200, 404]);
        if (page.status === 200) expect(page.text).to.contain('class="console"');
      });
    for (const [operation, call] of operationsOf(place))
      it(`has a form for ${call.method} ${path}`, async () => {
        const page = await owner.get(`/console/${operation}${at}`);
        const isOfOne = operation === 'change' || operation === 'replace';
        expect(page.status, page.text).to.be.oneOf(path.includes(':') || isOfOne ? [200, 400, 404] : [200]);
        if (page.status === 200) expect(page.text).to.contain(`action="/console/${operation}${at}"`);
      });
  }
});

/** Every operation of the console. */
const DONE = [...PLACES.values()].flatMap((place) => {
  const names = [...place.path.matchAll(/:(\w+)/g)].map(([, name]) => [name, 'unknown1'] as const);
  const at = fillPath(place.path, Object.fromEntries(names));
  return operationsOf(place).map(([operation, call]) => ({
    operation,
    call,
    path: `/console/${operation}${at}`,
  }));
});

describe('operations on resources in the console', () => {
  let server: TestServer;
  const tokens = new Map<string, string>();
  const agents = new Map<string, ConsoleAgent>();
  before(async () => {
    server = await startConsole({
      tenant: { ...tenant, attackProtection: { rateLimits: { console: WIDE, hosted: WIDE } } },
    });
    for (const role of ['owner', 'viewer', 'support'] as const) {
      const agent = await openConsole(server, role);
      agents.set(role, agent);
      tokens.set(role, readForm(await agent.get('/console'), '_csrf').fields._csrf ?? '');
    }
  });
  after(() => server.stop());

  const send = (role: string, path: string, token = tokens.get(role)) =>
    agents.get(role)?.agent.request(path, { form: { _csrf: token ?? '', step: 'save', body: '{}' } });

  for (const operation of ['create', 'change', 'replace', 'remove'] as const) {
    const all = DONE.filter((one) => one.operation === operation);

    for (const role of ['viewer', 'support'] as const)
      it(`are limited to the scopes of the role ${role}: ${operation}`, async () => {
        const scopes = scopesOf(role, [
          ...new Set(DONE.flatMap(({ call }) => [...call.scopes, ...(call.allScopes ?? [])])),
        ]);
        const isAllowed = ({ scopes: any, allScopes }: CallRules) =>
          allScopes === undefined
            ? any.some((one) => scopes.has(one))
            : allScopes.every((one) => scopes.has(one));
        const forbidden = all.filter(({ call }) => !isAllowed(call));
        expect(forbidden).not.to.deep.equal([]);
        for (const { path } of forbidden) {
          expect((await agents.get(role)?.agent.get(path))?.status, path).to.equal(403);
          expect((await send(role, path))?.status, path).to.equal(403);
        }
      });

    it(`reject forms of other pages: ${operation}`, async () => {
      for (const { path } of all) expect((await send('owner', path, 'guessed'))?.status, path).to.equal(403);
    });
  }
});

const HOSTILE = `"><script>alert(1)</script>'{{ 7919 | times: 6101 }}`;

describe('resources in the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  beforeEach(async () => {
    server = await startConsole();
    owner = await openConsole(server);
  });
  afterEach(() => server.stop());

  const pathOf = ({ location }: Answer) => new URL(location).pathname;
  /** Creates a role with its form. @returns the path of its page. */
  const makeRole = async (name: string, description = ''): Promise<string> => {
    const form = await owner.get('/console/create/roles');
    const made = await sendForm(owner, form, '/console/create/roles', { name, description });
    expect(made.status, made.text).to.equal(303);
    return pathOf(made);
  };
  const changeOf = (at: string) => at.replace('/resources/', '/change/');
  const removeOf = (at: string) => at.replace('/resources/', '/remove/');
  const revealOf = (at: string) => at.replace('/resources/', '/reveal/');

  it('are created by a form and changed after a review; the log has the administrator and the state before and after', async () => {
    const at = await makeRole('Readers', 'They read');
    const form = await owner.get(changeOf(at));
    const review = await sendForm(owner, form, changeOf(at), { description: 'They read all' });
    expect(review.status, review.text).to.equal(200);
    expect(review.text).to.contain('<del>They read</del>').and.to.contain('<ins>They read all</ins>');
    expect(review.text).not.to.contain('<del>Readers');
    expect((await owner.get(at)).text).not.to.contain('They read all');
    const saved = await sendForm(owner, review, changeOf(at));
    expect(saved.status, saved.text).to.equal(303);
    const page = await owner.get(saved.location);
    expect(page.text).to.contain('They read all').and.to.contain('role="status"');
    await server.tenant.close();
    const { records } = await server.store.collection('logs').list({ limit: 100 });
    const event = records.find(({ description }) => description === 'Update a role');
    expect(event).to.deep.include({ type: 'sapi', user_name: 'owner@console.example.test' });
    expect(event).to.have.nested.property('details.before.description', 'They read');
    expect(event).to.have.nested.property('details.after.description', 'They read all');
  });

  it('show faults at their fields, and keep the entered values', async () => {
    const form = await owner.get('/console/create/resource-servers');
    const typed = { identifier: 'https://new.example.test/', name: 'A new API', token_lifetime: '99999999' };
    const refused = await sendForm(owner, form, '/console/create/resource-servers', typed);
    expect(refused.status).to.equal(400);
    expect(refused.text).to.match(/id="f-token_lifetime-fault">[^<]+2592000/);
    expect(refused.text).to.contain('value="A new API"').and.to.contain('value="99999999"');
    const broken = { ...typed, token_lifetime: '600', scopes: '[{' };
    const unread = await sendForm(owner, refused, '/console/create/resource-servers', broken);
    expect(unread.text).to.contain('This is not valid JSON').and.to.contain('>\n[{</textarea>');
    const good = {
      ...typed,
      token_lifetime: '600',
      scopes: '[{"value":"read:it"}]',
      allow_offline_access: 'true',
    };
    const made = await sendForm(owner, unread, '/console/create/resource-servers', good);
    expect(made.status, made.text).to.equal(303);
    const page = await owner.get(made.location);
    expect(page.text).to.contain('A new API').and.to.contain('read:it');
  });

  it('show faults in the language of the page', async () => {
    const path = '/console/create/resource-servers';
    const [token] = [readForm(await owner.get('/console'), '_csrf').fields._csrf ?? ''];
    const form = { _csrf: token, name: 'x', token_lifetime: '99999999' };
    for (const [language, words] of [
      ['de', 'Zu groß'],
      ['ar', 'أكبر من اللازم'],
      ['en', 'Too big'],
    ] as const) {
      const refused = await owner.agent.request(path, { form, headers: { 'accept-language': language } });
      expect(refused.status, language).to.equal(400);
      expect(refused.text).to.contain(words);
    }
  });

  it('show a conflict on the form', async () => {
    await makeRole('Readers');
    const form = await owner.get('/console/create/roles');
    const again = await sendForm(owner, form, '/console/create/roles', { name: 'Readers' });
    expect(again.status).to.equal(409);
    expect(again.text).to.contain('role="alert"').and.to.contain('value="Readers"');
  });

  it('are not changed when somebody else has changed them meanwhile', async () => {
    const at = await makeRole('Readers', 'first');
    const mine = await sendForm(owner, await owner.get(changeOf(at)), changeOf(at), { description: 'mine' });
    const editor = await openConsole(server, 'editor');
    const theirs = await sendForm(editor, await editor.get(changeOf(at)), changeOf(at), {
      description: 'theirs',
    });
    expect((await sendForm(editor, theirs, changeOf(at))).status).to.equal(303);
    const refused = await sendForm(owner, mine, changeOf(at));
    expect(refused.status).to.equal(400);
    expect(refused.text).to.contain('Somebody has changed this in the meantime').and.to.contain('theirs');
    expect((await owner.get(at)).text).to.contain('theirs');
  });

  it('are edited as JSON after a review; a removed member is deleted', async () => {
    const at = await makeRole('Readers', 'They read');
    const form = await owner.get(`${changeOf(at)}?as=json`);
    const [, json = ''] = fieldsOf(form, changeOf(at)).find(([name]) => name === '$') ?? [];
    expect(JSON.parse(json)).to.deep.equal({ name: 'Readers', description: 'They read' });
    const review = await sendForm(owner, form, changeOf(at), { $: '{"name":"Writers"}' });
    expect(review.text).to.contain('<ins>Writers</ins>').and.to.contain('<del>They read</del>');
    expect((await sendForm(owner, review, changeOf(at))).status).to.equal(303);
    const page = await owner.get(at);
    expect(page.text).to.contain('Writers').and.not.to.contain('They read');
  });

  it('are listed in pages, searched, and sorted by a column', async () => {
    for (let index = 0; index < 30; index += 1)
      await makeRole(`Role ${String(index).padStart(2, '0')}`, index % 2 === 0 ? 'even' : 'odd');
    const rolesOn = ({ text }: Answer) => [...text.matchAll(/>(Role \d\d)<\/a>/g)].map(([, name]) => name);
    const first = await owner.get('/console/resources/roles');
    expect(rolesOn(first)).to.have.length(25);
    expect(first.text).to.contain('of 30').and.to.contain('rel="next"');
    const second = await owner.get('/console/resources/roles?page=2');
    expect(rolesOn(second)).to.deep.equal(['Role 25', 'Role 26', 'Role 27', 'Role 28', 'Role 29']);
    const named = await owner.get('/console/resources/roles?name_filter=Role+07');
    expect(rolesOn(named)).to.deep.equal(['Role 07']);
    const sorted = await owner.get('/console/resources/roles?by=description&order=down');
    expect(rolesOn(sorted)[0]).to.equal('Role 01');
    expect(sorted.text).to.contain('aria-sort="descending"');
    const oneApi = await owner.get(
      `/console/resources/resource-servers?identifiers=${encodeURIComponent(API)}`,
    );
    expect(oneApi.text).to.contain('1–1').and.to.contain(`name="identifiers" value="${API}"`);
    const apis = await owner.get('/console/resources/resource-servers?text=nothing+has+this');
    expect(apis.text).to.contain('Nothing matches');
  });

  it('that were never made are linked to, and say so', async () => {
    for (const path of ['/branding/themes/default', '/keys/custom-signing']) {
      const { status, text } = await owner.get(`/console/resources${path}`);
      expect(status, path).to.equal(200);
      expect(text, path).to.contain('There are none yet');
    }
  });

  it('are refused within the console when the API refuses to read them', async () => {
    const path = '/console/resources/users/nobody';
    for (const [language, heading] of [
      ['en', 'This cannot be shown'],
      ['de', 'Das lässt sich nicht anzeigen'],
      ['ar', 'لا يمكن عرض هذا'],
    ] as const) {
      const { status, text } = await owner.get(path, { 'accept-language': language });
      expect(status).to.equal(400);
      expect(text).to.contain(`<h1>${heading}</h1>`).and.to.contain('href="/console/users"');
    }
  });

  it('answer a place that no link has led to in the reader’s language, with a link to the beginning', async () => {
    const path = '/console/resources/roles';
    for (const [language, said] of [
      ['en', 'There is no such page of this list.'],
      ['de', 'Diese Seite der Liste gibt es nicht.'],
      ['ar', 'لا توجد صفحة كهذه في القائمة.'],
    ] as const) {
      const { status, text } = await owner.get(`${path}?from=nothing`, { 'accept-language': language });
      expect(status).to.equal(400);
      expect(text).to.contain(said).and.to.contain(`<p><a href="${path}">`);
      expect(text).to.not.contain('parameter is invalid').and.to.not.contain('class="card empty"');
    }
  });

  it('are filtered by parameters that select records, not by those that format the answer', async () => {
    const lists = [...placesOf().values()].filter(({ path, read }) => read?.query && !path.includes(':'));
    expect(lists.map(({ path }) => path)).to.include.members(['/organizations', '/forms']);
    for (const { path } of lists) {
      const { text } = await owner.get(`/console/resources${path}`);
      expect(text, path).to.not.match(/name="(include_\w+|fields|page|hydrate|synchronous|search_engine)"/);
    }
  });

  it('are listed completely when the API returns no total', async () => {
    const made = await owner.post('/console/create/organizations', { name: 'harbour' });
    const at = `${pathOf(made)}/invitations`;
    const organization_id = decodeURIComponent(pathOf(made).split('/').at(-1) ?? '');
    for (let index = 0; index < 51; index += 1)
      await server.store.collection('invitations').insert({
        id: `uinv_${index}`,
        organization_id,
        ticketHash: `hash-${index}`,
        inviter: { name: 'Ada' },
        invitee: { email: `guest-${index}@example.test` },
        client_id: 'spa',
        app_metadata: {},
        user_metadata: {},
        roles: [],
        created_at: '2026-01-01T00:00:00.000Z',
        expires_at: '2099-01-01T00:00:00.000Z',
      });
    const seen = new Set<string>();
    let next: string | undefined = at;
    while (next !== undefined) {
      const page: Answer = await owner.get(next);
      for (const [, id = ''] of page.text.matchAll(/(uinv_\d+)</g)) seen.add(id);
      next = /href="([^"]+)" rel="next"/.exec(page.text)?.[1];
    }
    expect(seen.size).to.equal(51);
    const searched = await owner.get(`${at}?text=guest-50@`);
    expect(searched.text).to.contain('uinv_50').and.to.contain('1–1');
  });

  it('are deleted after a warning, and only after a recent login', async () => {
    const at = await makeRole('Readers');
    const role = decodeURIComponent(at.split('/').at(-1) ?? '');
    const [user] = await server.users.withEmail(USER.email);
    const given = await owner.post(`/console/create/users/${encodeURIComponent(user?.id ?? '')}/roles`, {
      roles: role,
    });
    expect(given.status, given.text).to.equal(303);
    const asked = await owner.get(removeOf(at));
    expect(asked.text)
      .to.contain('lose it')
      .and.to.match(/users">Users<\/a>: 1/);
    server.tick(11 * 60_000);
    const stale = await sendForm(owner, asked, removeOf(at));
    expect(stale.location).to.contain('/authorize');
    expect((await owner.get('/console/resources/roles')).text).to.contain('Readers');
    await owner.get(stale.location);
    const fresh = await owner.get(removeOf(at));
    const removed = await sendForm(owner, fresh, removeOf(at));
    expect(removed.status, removed.text).to.equal(303);
    expect(pathOf(removed)).to.equal('/console/resources/roles');
    expect((await owner.get('/console/resources/roles')).text).not.to.contain('Readers');
  });

  it('hide secrets until an administrator who may see them asks for them by a form', async () => {
    const at = '/console/resources/clients/web';
    const secret = (await server.store.collection('clients').get('web'))?.client_secret ?? '';
    expect(secret).not.to.equal('');
    for (const path of [at, changeOf(at), `${changeOf(at)}?as=json`, '/console/resources/clients'])
      expect((await owner.get(path)).text, path).not.to.contain(secret);
    const shown = await owner.post(revealOf(at));
    expect(shown.status).to.equal(200);
    expect(shown.text).to.contain(secret);
    expect((await owner.get(revealOf(at))).status).to.equal(405);
    const viewer = await openConsole(server, 'viewer');
    expect((await viewer.get(at)).text)
      .not.to.contain(secret)
      .and.not.to.contain('/console/reveal/');
    expect((await viewer.post(revealOf(at))).text).not.to.contain(secret);
    server.tick(11 * 60_000);
    const stale = await owner.post(revealOf(at));
    expect(stale.status).to.equal(303);
    expect(stale.text).not.to.contain(secret);
  });

  it('keep hidden secrets when a record is edited as JSON, and reject a hidden secret that was moved', async () => {
    const made = await owner.post('/console/create/connections', {
      name: 'elsewhere',
      strategy: 'oidc',
      options: JSON.stringify({
        client_id: 'us',
        client_secret: 'a-secret-of-theirs',
        type: 'back_channel',
        issuer: 'https://idp.example.test',
        authorization_endpoint: 'https://idp.example.test/authorize',
        token_endpoint: 'https://idp.example.test/token',
        jwks_uri: 'https://idp.example.test/keys',
      }),
    });
    expect(made.status, made.text).to.equal(303);
    const at = pathOf(made);
    const form = await owner.get(`${changeOf(at)}?as=json`);
    const [, json = ''] = fieldsOf(form, changeOf(at)).find(([name]) => name === '$') ?? [];
    expect(json).not.to.contain('a-secret-of-theirs');
    const record = JSON.parse(json) as { options: Record<string, string> };
    record.options.scope = 'openid email';
    const review = await sendForm(owner, form, changeOf(at), { $: JSON.stringify(record) });
    expect(review.text).not.to.contain('a-secret-of-theirs');
    expect((await sendForm(owner, review, changeOf(at))).status).to.equal(303);
    expect((await owner.post(revealOf(at))).text)
      .to.contain('a-secret-of-theirs')
      .and.to.contain('openid email');
    record.options.other_secret = record.options.client_secret ?? '';
    const moved = await sendForm(owner, form, changeOf(at), { $: JSON.stringify(record) });
    expect(moved.status).to.equal(400);
    expect(moved.text).to.contain('enter it again');
  });

  it('keep secrets with their records when a list is edited', async () => {
    const [user] = await server.users.withEmail(USER.email);
    const keys = [
      { id: 'a', api_key: 'the-key-of-a' },
      { id: 'b', api_key: 'the-key-of-b' },
    ];
    await server.store
      .collection('users')
      .update(user?.id ?? '', (one) => ({ ...one, app_metadata: { keys } }));
    const at = `/console/change/users/${encodeURIComponent(user?.id ?? '')}`;
    const form = await owner.get(`${at}?as=json`);
    expect(form.text).not.to.contain('the-key-of');
    const [, json = ''] = fieldsOf(form, at).find(([name]) => name === '$') ?? [];
    const record = JSON.parse(json) as { app_metadata: { keys: Record<string, string>[] } };
    const [, second = {}] = record.app_metadata.keys;
    const kept = (all: object[]) => JSON.stringify({ ...record, app_metadata: { keys: all } });
    const renamed = await sendForm(owner, form, at, { $: kept([{ ...second, id: 'c' }]) });
    expect(renamed.status).to.equal(400);
    expect(renamed.text).to.contain('enter it again');
    const review = await sendForm(owner, form, at, { $: kept([second]) });
    expect((await sendForm(owner, review, at)).status).to.equal(303);
    const after = await server.store.collection('users').get(user?.id ?? '');
    expect(after?.app_metadata).to.deep.equal({ keys: [keys[1]] });
  });

  it('show a new secret once', async () => {
    const rotated = await owner.post('/console/create/clients/web/rotate-secret');
    const secret = (await server.store.collection('clients').get('web'))?.client_secret ?? 'none';
    expect(rotated.status).to.equal(200);
    expect(rotated.text).to.contain(secret);
    expect(rotated.headers['cache-control']).to.equal('no-store');
    server.tick(11 * 60_000);
    expect((await owner.post('/console/create/clients/web/rotate-secret')).status).to.equal(303);
    expect((await server.store.collection('clients').get('web'))?.client_secret).to.equal(secret);
  });

  it("cannot be set beyond the form's fields and the API's schema", async () => {
    const made = await owner.post('/console/create/roles', {
      name: 'Readers',
      id: 'rol_mine',
      constructor: 'x',
      '__proto__.polluted': 'x',
      'description.deep': 'x',
    });
    expect(made.status, made.text).to.equal(303);
    expect(made.location).not.to.contain('rol_mine');
    expect(({} as Record<string, unknown>).polluted).to.equal(undefined);
    const at = pathOf(made);
    const form = await owner.get(changeOf(at));
    const seen = Object.fromEntries(fieldsOf(form, changeOf(at))).seen ?? '';
    const forged = await owner.post(changeOf(at), { step: 'save', seen, body: '{"id":"rol_mine"}' });
    expect(forged.status).to.equal(400);
    expect(forged.text).to.contain('Additional properties not allowed: id');
    const odd = { scopes: '[{"console.resources.fault.none":1}]', identifier: 'x' };
    expect((await owner.post('/console/create/resource-servers', odd)).status).to.equal(400);
    const keyed = {
      name: 'x',
      jwt_configuration: '{}',
      client_metadata: '{"console.resources.fault.none":1}',
    };
    expect((await owner.post('/console/create/clients', keyed)).status).to.equal(400);
    for (const body of ['', 'null', '[]', '"x"', '{"__proto__":{"a":1}}']) {
      const answer = await owner.post(changeOf(at), { step: 'save', seen, body });
      expect(answer.status, body).to.be.oneOf([303, 400]);
    }
  });

  it('show hostile values as text', async () => {
    const [user] = await server.users.withEmail(USER.email);
    await server.store.collection('users').update(user?.id ?? '', (one) => ({
      ...one,
      name: HOSTILE,
      user_metadata: { [HOSTILE]: HOSTILE },
    }));
    const at = `/console/resources/users/${encodeURIComponent(user?.id ?? '')}`;
    const role = await makeRole('t:a role', HOSTILE);
    const pages = [at, changeOf(at), removeOf(at), `${changeOf(at)}?as=json`, '/console/resources/users'];
    for (const path of [...pages, role, changeOf(role), removeOf(role), '/console/resources/roles']) {
      const page = await owner.get(path);
      expect(page.status, path).to.equal(200);
      expect(page.text, path).not.to.contain('<script>alert').and.not.to.contain('48313819');
    }
    const review = await sendForm(owner, await owner.get(changeOf(role)), changeOf(role), { name: 't:x' });
    expect(review.text).to.contain('<ins>t:x</ins>').and.not.to.contain('<script>alert');
    const asked = `/console/resources/roles?name_filter=${encodeURIComponent(HOSTILE)}&by=${encodeURIComponent(HOSTILE)}`;
    expect((await owner.get(asked)).text).not.to.contain('<script>alert');
  });

  it('are limited to roles that the API permits, and to the console’s own forms', async () => {
    const at = await makeRole('Readers');
    const viewer = await openConsole(server, 'viewer');
    const page = await viewer.get(at);
    expect(page.status).to.equal(200);
    expect(page.text).not.to.contain('/console/change/').and.not.to.contain('/console/remove/');
    for (const path of ['/console/create/roles', changeOf(at), removeOf(at)]) {
      expect((await viewer.get(path)).status, path).to.equal(403);
      expect(
        (await viewer.post(path, { name: 'x', step: 'save', body: '{"name":"x"}' })).status,
        path,
      ).to.equal(403);
    }
    const support = await openConsole(server, 'support');
    const { client_secret: secret = 'none' } = (await server.store.collection('clients').get('web')) ?? {};
    expect((await support.get('/console/resources/clients/web')).text).not.to.contain(secret);
    expect((await support.get('/console/resources/tenants/settings')).status).to.equal(403);
    for (const path of ['/console/create/roles', changeOf(at), removeOf(at), revealOf(at)]) {
      const forged = await owner.agent.request(path, { form: { name: 'Others', _csrf: 'guessed' } });
      expect(forged.status, path).to.equal(403);
    }
    expect((await owner.get(at)).text)
      .to.contain('Readers')
      .and.not.to.contain('Others');
  });

  it('answer 404 for unknown records, and open records by id that no list leads to', async () => {
    expect((await owner.get('/console/resources/roles/rol_none')).status).to.equal(404);
    expect((await owner.get('/console/resources/nothing')).status).to.equal(404);
    const index = await owner.get('/console/resources');
    expect(index.text).to.contain('value="/email-templates/:templateName"');
    const opened = await owner.agent.get(
      '/console/open?at=/email-templates/:templateName&templateName=verify_email',
    );
    expect(pathOf(opened)).to.equal('/console/resources/email-templates/verify_email');
    const none = await owner.get(opened.location);
    expect(none.text)
      .to.contain('There are none yet')
      .and.to.contain('/console/replace/email-templates/verify_email');
    for (const at of ['//evil.example/:x', '/email-templates/:templateName', 'https://evil.example'])
      expect((await owner.agent.get(`/console/open?at=${encodeURIComponent(at)}`)).status, at).to.equal(404);
  });

  it('are ended by a form without fields, and only after a recent login', async () => {
    expect((await owner.post('/console/create/keys/signing/rotate')).status).to.be.oneOf([200, 303]);
    const keys = server.store.collection('signingKeys');
    const before = (await keys.list({ limit: 10 })).records.find(({ state }) => state === 'previous');
    const path = `/console/replace/keys/signing/${encodeURIComponent(before?.id ?? '')}/revoke`;
    server.tick(11 * 60_000);
    expect((await owner.post(path)).location).to.contain('/authorize');
    const again = await openConsole(server);
    const form = await again.get(path);
    expect(form.text).to.contain('This is done as soon as you confirm it');
    const done = await sendForm(again, form, path);
    expect(done.status).to.equal(303);
    expect(pathOf(done)).to.equal('/console/resources/keys/signing');
    expect(await keys.get(before?.id ?? '')).to.equal(undefined);
  });

  it('include single settings', async () => {
    const at = '/console/resources/attack-protection/brute-force-protection';
    const change = changeOf(at);
    const form = await owner.get(change);
    const review = await sendForm(owner, form, change, { max_attempts: '7' });
    expect(review.text).to.contain('max_attempts').and.to.contain('<ins>7</ins>');
    expect((await sendForm(owner, review, change)).status).to.equal(303);
    expect((await owner.get(at)).text).to.match(/max_attempts<\/code><\/dt><dd><bdi class="value">7</);
  });
});
