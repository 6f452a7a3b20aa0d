// Actions of credentials-exchange: tokens that applications get for themselves.
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { API, payload, tenant, token } from '../support/flows.ts';
import { PROTOCOL_CLAIMS } from '../support/protocol-claims.ts';
import { SHORT_SCRIPTS, type TestServer } from '../support/server.ts';
import { actionFailures, bindActions, managed } from './support.ts';

const NS = 'https://example.test/';
const TRIGGER = 'credentials-exchange';

describe('actions of credentials-exchange', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startManaged(tenant, undefined, {}, { waits: SHORT_SCRIPTS });
  });
  afterEach(() => server.stop());

  const ask = async (more: Record<string, string> = {}) => {
    const answer = await token(createAgent(server), {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
      ...more,
    });
    return { status: answer.status, body: answer.json() };
  };
  const claims = async (more?: Record<string, string>) => {
    const { body } = await ask(more);
    return payload(body.access_token);
  };
  /** Makes an action from a body. */
  const action = (body: string) =>
    `exports.onExecuteCredentialsExchange = async (event, api) => {\n${body}\n};`;

  it('add claims to the token, one after the other', async () => {
    await bindActions(
      server,
      TRIGGER,
      {
        code: action(`
          api.accessToken.setCustomClaim('${NS}client', event.client.name);
          api.accessToken.setCustomClaim('${NS}api', event.resource_server.identifier);
          api.accessToken.setCustomClaim('${NS}scopes', event.transaction.requested_scopes);`),
      },
      { code: action(`api.accessToken.setCustomClaim('${NS}tenant', event.tenant.id);`) },
    );
    expect(await claims()).to.deep.include({
      [`${NS}client`]: 'Machine',
      [`${NS}api`]: API,
      [`${NS}scopes`]: ['read:things'],
      [`${NS}tenant`]: 'localhost',
    });
  });

  it('get the parameters of the request, without secrets', async () => {
    await bindActions(server, TRIGGER, {
      code: action(`api.accessToken.setCustomClaim('${NS}said', event.request.body);`),
    });
    const said = (await claims({ 'ext-region': 'north', other: 'x', password: 'p' }))[`${NS}said`];
    expect(said).to.include({ 'ext-region': 'north', other: 'x', grant_type: 'client_credentials' });
    expect(said).not.to.have.any.keys('client_secret', 'password');
  });

  it('deny a token with their reason, after which no action runs', async () => {
    await bindActions(
      server,
      TRIGGER,
      { code: action(`api.access.deny('invalid_scope', 'Not at this hour.');`) },
      { code: action(`throw new Error('was run');`) },
    );
    const { status, body } = await ask();
    expect(status).to.equal(400);
    expect(body).to.deep.equal({ error: 'invalid_scope', error_description: 'Not at this hour.' });
    expect(await actionFailures(server)).to.deep.equal([]);
  });

  it('set the scopes of the token within the client grant', async () => {
    await managed(server, 'PATCH', `/resource-servers/${encodeURIComponent(API)}`, {
      scopes: ['read:things', 'write:things', 'drop:things'].map((value) => ({ value })),
    });
    const { body: grants } = await managed(server, 'GET', '/client-grants?client_id=m2m');
    const grant = grants.find(({ audience }: { audience: string }) => audience === API);
    await managed(server, 'PATCH', `/client-grants/${grant.id}`, { scope: ['read:things', 'write:things'] });
    await bindActions(
      server,
      TRIGGER,
      {
        code: action(`
          api.transaction.addTargetScope('write:things');
          api.transaction.addTargetScope('drop:things');
          api.transaction.removeTargetScope('read:things');`),
      },
      { code: action(`api.accessToken.setCustomClaim('${NS}now', event.transaction.target_scopes);`) },
    );
    const { body } = await ask({ scope: 'read:things' });
    expect(payload(body.access_token)).to.deep.include({
      scope: 'write:things',
      [`${NS}now`]: ['write:things', 'drop:things'],
    });
    expect(body.scope).to.equal('write:things');
    await bindActions(server, TRIGGER, { code: action('api.transaction.clearTargetScopes();') });
    const { body: none } = await ask();
    expect(payload(none.access_token)).not.to.have.property('scope');
    await bindActions(server, TRIGGER, { code: action(`api.transaction.setTargetScopes('all');`) });
    expect((await ask()).status).to.equal(403);
  });

  it('cannot set a claim of the protocol, which is logged', async () => {
    await bindActions(server, TRIGGER, {
      code: action(`
        for (const claim of ${JSON.stringify(PROTOCOL_CLAIMS)})
          api.accessToken.setCustomClaim(claim, 'evil');
        api.accessToken.setCustomClaim('__proto__', { sub: 'evil' });
        api.accessToken.setCustomClaim('${NS}fine', true);`),
    });
    const said = await claims();
    expect(JSON.stringify(said)).not.to.contain('evil');
    expect(said).to.include({ sub: 'm2m@clients', [`${NS}fine`]: true });
    expect((await actionFailures(server)).join('\n')).to.match(/sub is a claim of the protocol's own/);
  });

  it('deny the token when they fail or take too long, and an event says why', async () => {
    for (const [body, why] of [
      [`throw new Error('The database is down.');`, /script: The database is down/],
      ['for (;;);', /cpu: it used the processor/],
      ['syntax error', /failed: s/],
      ['event.client.nothing.deep', /failed: script/],
    ] as const) {
      await bindActions(server, TRIGGER, { name: `fails ${why}`, code: action(body) });
      const { status, body: said } = await ask();
      expect(status).to.equal(403);
      expect(said).to.deep.equal({
        error: 'access_denied',
        error_description: 'The request could not be completed.',
      });
      expect((await actionFailures(server)).some((one) => why.test(one))).to.equal(true);
    }
  });

  it('are skipped when they fail and their binding makes them optional', async () => {
    await bindActions(
      server,
      TRIGGER,
      {
        code: action(`api.accessToken.setCustomClaim('${NS}half', 1); throw new Error('no');`),
        on_error: 'continue',
      },
      { code: action(`api.accessToken.setCustomClaim('${NS}rest', 2);`) },
    );
    const said = await claims();
    expect(said).to.include({ [`${NS}rest`]: 2 });
    expect(said).not.to.have.property(`${NS}half`);
  });

  it('run as they were deployed last, not as drafts', async () => {
    const set = (value: string) => action(`api.accessToken.setCustomClaim('${NS}version', '${value}');`);
    const [id] = await bindActions(server, TRIGGER, { code: set('first') });
    await managed(server, 'PATCH', `/actions/actions/${id}`, { code: set('second') });
    expect(await claims()).to.include({ [`${NS}version`]: 'first' });
    await managed(server, 'POST', `/actions/actions/${id}/deploy`);
    expect(await claims()).to.include({ [`${NS}version`]: 'second' });
    await managed(server, 'PATCH', `/actions/triggers/${TRIGGER}/bindings`, { bindings: [] });
    expect(await claims()).not.to.have.property(`${NS}version`);
  });

  it('get their secrets, which no API returns', async () => {
    const secret = 'very-secret-9f1c';
    const [id] = await bindActions(server, TRIGGER, {
      code: action(`
        console.log('it is', event.secrets.KEY);
        if (event.request.body.client_secret !== undefined) throw new Error('it has the secret of the client');
        if (event.secrets.KEY !== '${'very-'}' + 'secret-9f1c') throw new Error('no secret');
        throw new Error('failed with ' + event.secrets.KEY);`),
      secrets: { KEY: secret },
    });
    expect((await ask()).status).to.equal(403);
    const failures = (await actionFailures(server)).join('\n');
    expect(failures).to.contain('failed with ***');
    expect(JSON.stringify((await managed(server, 'GET', `/actions/actions/${id}`)).body)).not.to.contain(
      secret,
    );
    const bound = await managed(server, 'GET', `/actions/triggers/${TRIGGER}/bindings`);
    expect(JSON.stringify(bound.body)).not.to.contain(secret);
    const { text: shown } = await createAgent(server).get('/dev/scripts.json');
    expect(shown).to.contain('it is ***').and.not.contain(secret);
    expect(server.logged()).not.to.contain(secret);
    const { dataDir } = server.settings;
    for (const file of await readdir(dataDir, { recursive: true, withFileTypes: true })) {
      if (!file.isFile()) continue;
      expect(await readFile(join(file.parentPath, file.name), 'latin1'), file.name).not.to.contain(secret);
    }
  });

  it('can cache text for each other, and nothing else outlives a run', async () => {
    await bindActions(server, TRIGGER, {
      code: action(`
        globalThis.count = (globalThis.count ?? 0) + 1;
        const before = api.cache.get('count');
        api.cache.set('count', String(Number(before?.value ?? 0) + 1), { ttl: 60000 });
        api.accessToken.setCustomClaim('${NS}counts', [globalThis.count, Number(before?.value ?? 0)]);`),
    });
    expect((await claims())[`${NS}counts`]).to.deep.equal([1, 0]);
    expect((await claims())[`${NS}counts`]).to.deep.equal([1, 1]);
  });

  it('can cache text for a quarter of an hour, or for a shorter time', async () => {
    await bindActions(server, TRIGGER, {
      code: action(`
        const minutes = (options) => {
          const { record } = api.cache.set('key', 'value', options);
          return Math.round((record.expires_at - Date.now()) / 60000);
        };
        api.accessToken.setCustomClaim('${NS}minutes', [
          minutes(), minutes({ ttl: 60000 }), minutes({ ttl: 600000, expires_at: Date.now() + 120000 }),
          minutes({ ttl: 1e12 }), api.cache.set('key', 'value', { expires_at: 'soon' }).type]);`),
    });
    expect((await claims())[`${NS}minutes`]).to.deep.equal([15, 1, 2, 1440, 'error']);
  });

  it('can cache a little text, and none for actions of another trigger', async () => {
    await bindActions(server, TRIGGER, {
      code: action(`
        for (let n = 0; n < 25; n++) api.cache.set('key ' + n, 'kept');
        api.cache.set('long', 'x'.repeat(5000));
        api.cache.set('__proto__', 'kept');`),
    });
    await claims();
    await bindActions(server, TRIGGER, {
      code: action(`
        const kept = [...Array(25).keys()].filter((n) => api.cache.get('key ' + n) !== undefined).length;
        const odd = ['long', '__proto__', 'constructor'].map((key) => api.cache.get(key)?.value ?? 'none');
        api.accessToken.setCustomClaim('${NS}kept', [kept, ...odd]);`),
    });
    expect((await claims())[`${NS}kept`]).to.deep.equal([19, 'none', 'kept', 'none']);
    await bindActions(server, 'pre-user-registration', {
      code: `exports.onExecutePreUserRegistration = async (event, api) =>
        api.access.deny('there', api.cache.get('key 24')?.value ?? 'nothing is there');`,
    });
    const answer = await createAgent(server).request('/dbconnections/signup', {
      json: { client_id: 'spa', connection: 'users', email: 'new@example.test', password: 'Correct-Horse-9' },
    });
    expect(answer.status).to.equal(400);
    expect(answer.text).to.contain('nothing is there');
  });
});
