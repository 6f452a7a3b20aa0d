// Runs of actions in the Management API: tests of a draft, and the outcome of runs for applications and logins.
import { expect } from 'chai';
import { managementToken, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import {
  API,
  logIn,
  PASSWORD_REQUEST,
  pkce,
  responseOf,
  spaRequest,
  tenant,
  token,
} from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { bindActions, managed } from './support.ts';

const TRIGGER = 'credentials-exchange';

/** Makes names unique. */
let made = 0;

describe('runs of actions', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startManaged(tenant);
  });
  afterEach(() => server.stop());

  const draft = async (code: string, trigger = 'post-login', secret = 'a-secret-of-it') => {
    const { status, body } = await managed(server, 'POST', '/actions/actions', {
      name: 'Tried',
      code,
      supported_triggers: [{ id: trigger }],
      secrets: [{ name: 'KEY', value: secret }],
    });
    expect(status).to.equal(201);
    return `/actions/actions/${body.id}/test`;
  };
  const failing = async (body = `throw new Error('no');`, more: object = {}) => {
    await bindActions(server, TRIGGER, {
      name: `Failing ${++made}`,
      code: `exports.onExecuteCredentialsExchange = async (event, api) => { ${body} };`,
      ...more,
    });
    const answer = await token(createAgent(server), {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
    });
    const { records } = await server.store.collection('logs').list({ limit: 1000 });
    const event = records.filter(({ type }) => type === 'actions_execution_failed').at(-1);
    return { status: answer.status, id: (event?.details?.actions as any)?.executions?.[0] as string };
  };

  it('of a draft return its commands, what would be refused and its log, without secrets and without effect', async () => {
    const path = await draft(`exports.onExecutePostLogin = async (event, api) => {
      console.log('told', event.user.name, event.secrets.KEY);
      api.idToken.setCustomClaim('https://example.test/name', event.user.name);
      api.user.setAppMetadata('key', { [event.secrets.KEY]: [event.secrets.KEY] });
      api.redirect.sendUserTo('http://plain.example.test/');
      if (event.user.name === 'Bad') throw new Error('with ' + event.secrets.KEY);
    };`);
    const { status, body } = await managed(server, 'POST', path, { payload: { user: { name: 'Ada' } } });
    expect(status).to.equal(200);
    expect(body.payload.commands).to.deep.equal([
      { method: 'idToken.setCustomClaim', args: ['https://example.test/name', 'Ada'] },
      { method: 'user.setAppMetadata', args: ['key', { '***': ['***'] }] },
      { method: 'redirect.sendUserTo', args: ['http://plain.example.test/'] },
    ]);
    expect(body.payload).to.deep.include({
      refused: ['redirect.sendUserTo'],
      logs: [{ level: 'info', text: 'told Ada ***' }],
    });
    const failed = await managed(server, 'POST', path, { payload: { user: { name: 'Bad' } } });
    expect(failed.body.payload).to.deep.include({ commands: [], error: { msg: 'script: with ***' } });
    expect(server.logged()).not.to.contain('a-secret-of-it');
  });

  it('of a draft hide a secret that is encoded in a URL or in JSON', async () => {
    const code = `exports.onExecutePostLogin = async (event, api) => {
      api.redirect.sendUserTo('https://form.example.test/?key=' + encodeURIComponent(event.secrets.KEY));
      api.idToken.setCustomClaim('https://example.test/json', JSON.stringify([event.secrets.KEY]));
    };`;
    const { body } = await managed(server, 'POST', await draft(code, 'post-login', 'a "secret" of/it'), {
      payload: {},
    });
    expect(body.payload.commands).to.deep.equal([
      { method: 'redirect.sendUserTo', args: ['https://form.example.test/?key=***'] },
      { method: 'idToken.setCustomClaim', args: ['https://example.test/json', '["***"]'] },
    ]);
  });

  it('of a draft hide the whole of a secret that begins with another one, in forms as well', async () => {
    const code = `exports.onExecutePostLogin = async (event, api) => {
      console.log('used', event.secrets.LONG);
      api.redirect.sendUserTo('https://form.example.test/?' + new URLSearchParams({ key: event.secrets.LONG }));
    };`;
    const { status, body } = await managed(server, 'POST', '/actions/actions', {
      name: 'Tried',
      code,
      supported_triggers: [{ id: 'post-login' }],
      secrets: [
        { name: 'SHORT', value: 'password' },
        { name: 'LONG', value: "password (of the CRM's)" },
      ],
    });
    expect(status).to.equal(201);
    const tried = await managed(server, 'POST', `/actions/actions/${body.id}/test`, { payload: {} });
    expect(tried.body.payload.logs).to.deep.equal([{ level: 'info', text: 'used ***' }]);
    expect(tried.body.payload.commands).to.deep.equal([
      { method: 'redirect.sendUserTo', args: ['https://form.example.test/?key=***'] },
    ]);
  });

  it('of a draft require permission, an event, and a trigger that exists here', async () => {
    const path = await draft('exports.onExecutePostLogin = async () => {};');
    const response = await fetch(`${server.url}/api/v2${path}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${await managementToken(server, 'read:actions')}`,
        'content-type': 'application/json',
      },
      body: '{"payload":{}}',
    });
    expect(response.status).to.equal(403);
    for (const body of [{}, { payload: 1 }, { payload: [] }, { payload: {}, more: 1 }])
      expect((await managed(server, 'POST', path, body)).status).to.equal(400);
    expect((await managed(server, 'POST', '/actions/actions/none/test', { payload: {} })).status).to.equal(
      404,
    );
    await managed(server, 'DELETE', path.replace('/test', ''));
    const other = await draft('exports.x = 1;', 'event-stream');
    expect((await managed(server, 'POST', other, { payload: {} })).status).to.equal(400);
  });

  it('are recorded, and named in the event of one that failed', async () => {
    const { status, id } = await failing();
    expect(status).to.equal(403);
    const { body } = await managed(server, 'GET', `/actions/executions/${id}`);
    expect(body).to.include({ id, trigger_id: TRIGGER, status: 'final' });
    const [result] = body.results;
    expect(result).to.deep.include({ error: { id: 'failed', msg: 'script: no' } });
    expect(result.action_name).to.match(/^Failing/);
    for (const date of [body.created_at, body.updated_at, result.started_at, result.ended_at])
      expect(date).to.match(/^\d{4}-.*Z$/);
    expect((await managed(server, 'GET', '/actions/executions/nothing')).status).to.equal(404);
  });

  it('contain neither the event nor the secrets of an action', async () => {
    const { id } = await failing(
      `console.log('printed'); throw new Error(event.secrets.KEY + event.client.name);`,
      {
        secrets: { KEY: 'a-secret-of-it' },
      },
    );
    const { body } = await managed(server, 'GET', `/actions/executions/${id}`);
    expect(JSON.stringify(body))
      .to.contain('***Machine')
      .and.not.match(/a-secret-of-it|printed/);
  });

  it('are named in the event of a login, by password and in the browser, allowed and denied', async () => {
    await managed(server, 'POST', '/rules', {
      name: 'First',
      script: 'function (user, context, callback) { callback(null, user, context); }',
    });
    await bindActions(server, 'post-login', {
      name: 'Second',
      code: `exports.onExecutePostLogin = async (event, api) => {
        if (event.client.client_id === 'web') api.access.deny('Not here.');
      };`,
    });
    const eventOf = async (type: string, client: string) => {
      const { records } = await server.store.collection('logs').list({ limit: 1000 });
      const event = records.filter((one) => one.type === type && one.client_id === client).at(-1);
      return (event?.details?.actions as any)?.executions as string[];
    };
    const { challenge } = pkce();
    expect(responseOf(await logIn(createAgent(server), server, spaRequest(challenge)))).to.have.property(
      'code',
    );
    const denied = await token(createAgent(server), {
      ...PASSWORD_REQUEST,
      scope: 'openid',
    });
    expect(denied.status).to.equal(403);
    for (const [type, client] of [
      ['s', 'spa'],
      ['f', 'web'],
    ] as const) {
      const [id, ...more] = await eventOf(type, client);
      expect(more).to.deep.equal([]);
      const { status, body } = await managed(server, 'GET', `/actions/executions/${id}`);
      expect(status, type).to.equal(200);
      expect(body.results.map((one: Record<string, unknown>) => one.action_name)).to.deep.equal([
        'First',
        'Second',
      ]);
      expect(body).to.include({ trigger_id: 'post-login', status: 'final' });
    }
    await managed(server, 'PATCH', '/actions/triggers/post-login/bindings', { bindings: [] });
    await managed(server, 'DELETE', `/rules/${(await managed(server, 'GET', '/rules')).body[0].id}`);
    await logIn(createAgent(server), server, spaRequest(challenge));
    expect(await eventOf('s', 'spa')).to.equal(undefined);
  });

  it('are kept for ten days, or as long as the log is', async () => {
    const days = async () => {
      const { id } = await failing();
      const found = await server.store.collection('actionExecutions').get(id);
      return Math.round(((found?.expiresAt ?? 0) - Date.now() / 1000) / 86_400);
    };
    expect(await days()).to.equal(10);
    await server.stop();
    server = await startManaged({ ...tenant, tenant: { log_retention_days: 3 } });
    expect(await days()).to.equal(3);
  });
});
