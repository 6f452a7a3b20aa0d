// Versions of an action: earlier deployments, going back to one, and the draft beside them.
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { API, payload, tenant, token } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { actionsAt } from '../support/tenant.ts';
import { bindActions, managed } from './support.ts';

const CLAIM = 'https://example.test/version';
const TRIGGER = 'credentials-exchange';
const code = (version: string) =>
  `exports.onExecuteCredentialsExchange = async (event, api) => api.accessToken.setCustomClaim('${CLAIM}', '${version}');`;

describe('versions of actions', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const runs = async () => {
    const answer = await token(createAgent(server), {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
    });
    return payload(answer.json().access_token)[CLAIM];
  };
  const call = async (method: string, path: string, body?: object) => {
    const answer = await managed(server, method, `/actions/actions/${path}`, body);
    expect(answer.status, JSON.stringify(answer.body)).to.equal(200);
    return answer.body;
  };

  it('are deployed again, without changing the draft unless that is requested', async () => {
    server = await startManaged(tenant);
    const [id = ''] = await bindActions(server, TRIGGER, { code: code('first') });
    const first = (await call('GET', `${id}/versions`)).versions[0];
    expect(first).to.include({ number: 1, deployed: true, code: code('first') });
    await call('PATCH', id, { code: code('second') });
    expect((await call('GET', id)).all_changes_deployed).to.equal(false);
    await call('POST', `${id}/deploy`);
    expect(await runs()).to.equal('second');
    await call('PATCH', id, { code: code('third') });

    const back = await call('POST', `${id}/versions/${first.id}/deploy`);
    expect(back).to.include({ number: 3, code: code('first'), deployed: true });
    expect(await runs()).to.equal('first');
    expect(await call('GET', id)).to.include({ code: code('third'), all_changes_deployed: false });
    expect((await call('GET', id)).deployed_version).to.include({ id: back.id });
    const { versions } = await call('GET', `${id}/versions`);
    expect(await call('GET', `${id}/versions/${back.id}`)).to.deep.equal(versions[0]);
    expect(versions.map((one: Record<string, unknown>) => [one.number, one.deployed])).to.deep.equal([
      [3, true],
      [2, false],
      [1, false],
    ]);

    await call('POST', `${id}/versions/${first.id}/deploy`, { update_draft: true });
    expect(await call('GET', id)).to.include({ code: code('first'), all_changes_deployed: true });
    const missing = await managed(server, 'POST', `/actions/actions/${id}/versions/nothing/deploy`);
    expect(missing.status).to.equal(404);
  });

  it('begin with the first when an action is deployed as it is created, which fails as a whole', async () => {
    server = await startManaged(tenant);
    const make = (more: object) =>
      managed(server, 'POST', '/actions/actions', {
        name: 'At once',
        supported_triggers: [{ id: TRIGGER }],
        code: code('at once'),
        deploy: true,
        ...more,
      });
    const refused = await make({ modules: [{ module_name: 'no-such-module', module_version_number: 1 }] });
    expect(refused.status).to.equal(400);
    const named = await managed(server, 'GET', '/actions/actions?actionName=At%20once');
    expect(named.body.total).to.equal(0);
    const made = await make({ secrets: [{ name: 'KEY', value: 'a value of its own' }] });
    expect(made.status).to.equal(201);
    expect(made.body).to.include({ status: 'built', all_changes_deployed: true }).and.not.have.key('deploy');
    expect(made.body.deployed_version).to.include({ number: 1, code: code('at once') });
    expect(JSON.stringify(made.body)).not.to.contain('a value of its own');
    expect((await call('GET', `${made.body.id}/versions`)).versions).to.have.length(1);
    const bindings = [{ ref: { type: 'action_id', value: made.body.id } }];
    await managed(server, 'PATCH', `/actions/triggers/${TRIGGER}/bindings`, { bindings });
    expect(await runs()).to.equal('at once');
  });

  it('keep the value of a secret that a change names without one', async () => {
    server = await startManaged(tenant);
    const [id = ''] = await bindActions(server, TRIGGER, {
      code: `exports.onExecuteCredentialsExchange = async (event, api) =>
        api.accessToken.setCustomClaim('${CLAIM}', Object.entries(event.secrets).map(([name, value]) => name + value.length).join());`,
      secrets: { KEY: 'seven77', OTHER: 'gone' },
    });
    expect(await runs()).to.equal('KEY7,OTHER4');
    const { secrets } = await call('GET', id);
    expect(secrets.map((one: object) => Object.keys(one))).to.deep.equal([
      ['name', 'updated_at'],
      ['name', 'updated_at'],
    ]);
    const [{ updated_at: made }] = secrets;
    expect(new Date(made).toISOString()).to.equal(made);
    server.tick(60_000);
    await call('PATCH', id, {
      secrets: secrets.map((one: object) => ({ ...one, updated_at: '2001-01-01' })),
    });
    const same = await call('GET', id);
    expect(same).to.include({ all_changes_deployed: true });
    expect(same.secrets).to.deep.equal(secrets);
    server.tick(60_000);
    await call('PATCH', id, { secrets: [{ name: 'KEY' }, { name: 'NEW', value: 'x' }] });
    const changed = await call('GET', id);
    expect(changed).to.include({ all_changes_deployed: false });
    expect(changed.secrets[0]).to.deep.equal({ name: 'KEY', updated_at: made });
    expect(changed.secrets[1].name).to.equal('NEW');
    expect(changed.secrets[1].updated_at > same.updated_at).to.equal(true);
    expect(changed.deployed_version.secrets).to.deep.equal(secrets);
    expect(await runs()).to.equal('KEY7,OTHER4');
    await call('POST', `${id}/deploy`);
    expect(await runs()).to.equal('KEY7,NEW1');
  });

  it('begin with the deployment of a tenant file', async () => {
    server = await startManaged({
      ...tenant,
      ...actionsAt(TRIGGER, { Filed: code('file') }),
    });
    expect(await runs()).to.equal('file');
    const { actions } = (await managed(server, 'GET', '/actions/actions')).body;
    const [{ id }] = actions;
    const first = await call('POST', `${id}/deploy`);
    await call('PATCH', id, { code: code('second') });
    expect(await runs()).to.equal('file');
    await call('POST', `${id}/deploy`);
    expect(await runs()).to.equal('second');
    await call('POST', `${id}/versions/${first.id}/deploy`);
    expect(await runs()).to.equal('file');
    expect((await call('GET', id)).code).to.equal(code('second'));
  });
});
