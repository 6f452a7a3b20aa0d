// Modules that actions share: an action runs with the version of a module that it names, as it was published.
import { expect } from 'chai';
import { readTenant } from '../../src/tenant/load.ts';
import { managementClient, startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { API, payload, tenant, token } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { actionFailures, bindActions, managed } from './support.ts';

const NS = 'https://example.test/';
const TRIGGER = 'credentials-exchange';

describe('modules of actions', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await startManaged(tenant);
  });
  afterEach(() => server.stop());

  const ask = async () => {
    const answer = await token(createAgent(server), {
      grant_type: 'client_credentials',
      client_id: 'm2m',
      client_secret: 'm2m-secret',
      audience: API,
    });
    return { status: answer.status, body: answer.json() };
  };
  const said = async () => payload((await ask()).body.access_token)[`${NS}said`];
  const action = (value: string) =>
    `exports.onExecuteCredentialsExchange = async (event, api) => {
       api.accessToken.setCustomClaim('${NS}said', ${value});
     };`;
  const module = (name: string, code: string, more: object = {}) =>
    managed(server, 'POST', '/actions/modules', { name, code, publish: true, ...more }).then(
      ({ body }) => body,
    );
  /** Makes an action that uses modules, deploys it and binds it. */
  const use = async (value: string, ...modules: object[]) => {
    const [id = ''] = await bindActions(server, TRIGGER, { code: action(value) });
    const patched = await managed(server, 'PATCH', `/actions/actions/${id}`, { modules });
    expect(patched.status, JSON.stringify(patched.body)).to.equal(200);
    const deployed = await managed(server, 'POST', `/actions/actions/${id}/deploy`);
    expect(deployed.status, JSON.stringify(deployed.body)).to.equal(200);
    return id;
  };

  it('are required by name, have their own secrets, and may require each other', async () => {
    const secret = 'of-the-module-7c1e';
    await module(
      'greeting',
      `exports.greet = (name) => 'Hello ' + name + ' ' + actions.secrets.KEY.length;`,
      {
        secrets: [{ name: 'KEY', value: secret }],
      },
    );
    await module('shout', `exports.shout = (text) => require('actions:greeting').greet(text).toUpperCase();`);
    const refs = ['greeting', 'shout'].map((module_name) => ({ module_name, module_version_number: 1 }));
    await use(`require('actions:shout').shout(event.client.name)`, ...refs);
    expect(await said()).to.equal(`HELLO MACHINE ${secret.length}`);
    // No secrets of others, and no module that the action does not name.
    await use(`[typeof event.secrets.KEY, require('actions:greeting').KEY, typeof actions]`, ...refs);
    expect(await said()).to.deep.equal(['undefined', null, 'undefined']);
    await use(`require('actions:shout')`, refs[0] ?? {});
    expect((await ask()).status).to.equal(403);
    expect((await actionFailures(server)).join('\n')).to.contain('shout is none of this action');
    const everything = JSON.stringify(await managed(server, 'GET', '/actions/modules'));
    expect(everything).to.contain('KEY').and.not.contain(secret);
  });

  it('are loaded again after they threw, so that none is used half loaded', async () => {
    const half = `exports.half = true; throw new Error('not today'); exports.whole = true;`;
    await module('half', half);
    await module('outer', `exports.begun = true; require('actions:half'); exports.done = true;`);
    const refs = ['half', 'outer'].map((module_name) => ({ module_name, module_version_number: 1 }));
    const tries = (name: string) =>
      `[1, 2].map(() => { try { return require('actions:${name}'); } catch (thrown) { return thrown.message; } })`;
    await use(tries('half'), ...refs);
    expect(await said()).to.deep.equal(['not today', 'not today']);
    await use(tries('outer'), ...refs);
    expect(await said()).to.deep.equal(['not today', 'not today']);
  });

  it('run in the named version, whatever happens to the draft', async () => {
    const { id, latest_version: first } = await module('number', 'module.exports = 1;');
    expect(first).to.include({ version_number: 1 });
    await use(`require('actions:number')`, { module_id: id, module_version_id: first.id });
    expect(await said()).to.equal(1);
    await managed(server, 'PATCH', `/actions/modules/${id}`, { code: 'module.exports = 2;' });
    expect(await said()).to.equal(1);
    const { status, body: second } = await managed(server, 'POST', `/actions/modules/${id}/versions`);
    expect(status).to.equal(200);
    expect(second).to.include({ version_number: 2, module_id: id });
    expect(await said()).to.equal(1);
    await use(`require('actions:number')`, { module_name: 'number', module_version_number: 2 });
    expect(await said()).to.equal(2);
    // Nothing has changed since, so there is no third version.
    const { body: again } = await managed(server, 'POST', `/actions/modules/${id}/versions`);
    expect(again.id).to.equal(second.id);
  });

  it('are refused with the action when they or their version do not exist, and cannot be deleted while in use', async () => {
    const { id } = await module('number', 'module.exports = 1;');
    const draft = await managed(server, 'POST', '/actions/modules', { name: 'draft', code: '' });
    for (const reference of [
      { module_name: 'nobody' },
      { module_id: id, module_version_number: 2 },
      { module_id: id, module_version_id: 'acmv_none' },
      { module_id: draft.body.id },
    ]) {
      const answer = await managed(server, 'POST', '/actions/actions', {
        name: 'x',
        supported_triggers: [{ id: TRIGGER }],
        modules: [reference],
      });
      expect(answer.status, JSON.stringify(reference)).to.equal(400);
    }
    const actionId = await use('1', { module_id: id });
    expect((await managed(server, 'DELETE', `/actions/modules/${id}`)).status).to.equal(409);
    await managed(server, 'PATCH', `/actions/actions/${actionId}`, { modules: [] });
    // The deployed version of the action still uses it.
    expect((await managed(server, 'DELETE', `/actions/modules/${id}`)).status).to.equal(409);
    await managed(server, 'POST', `/actions/actions/${actionId}/deploy`);
    expect((await managed(server, 'DELETE', `/actions/modules/${id}`)).status).to.equal(204);
  });

  it('can be made, published, rolled back and listed with the published client', async () => {
    const { modules } = managementClient(server).actions;
    const { id = '' } = await modules.create({ name: 'shared', code: 'module.exports = 1;' });
    expect(await modules.get(id)).to.include({ all_changes_published: false, latest_version_number: 0 });
    const first = await modules.versions.create(id);
    await modules.update(id, { code: 'module.exports = 2;' });
    const second = await modules.versions.create(id);
    const versions = await modules.versions.list(id);
    expect(versions.data.map(({ version_number }) => version_number)).to.deep.equal([1, 2]);
    expect(await modules.versions.get(id, first.id ?? '')).to.include({ code: 'module.exports = 1;' });
    const rolledBack = await modules.rollback(id, { module_version_id: first.id ?? '' });
    expect(rolledBack).to.include({ code: 'module.exports = 1;', all_changes_published: false });
    expect(rolledBack.latest_version).to.include({ id: second.id });
    const actionId = await use(`require('actions:shared')`, { module_id: id, module_version_id: first.id });
    const users = await modules.listActions(id);
    expect(users.data).to.have.length(1);
    expect(users.data[0]).to.include({ action_id: actionId, module_version_number: 1 });
    expect((await modules.list()).data[0]).to.include({ name: 'shared', actions_using_module_total: 1 });
    expect((await managed(server, 'GET', `/actions/actions/${actionId}`)).body.modules).to.deep.equal([
      {
        module_id: id,
        module_name: 'shared',
        module_version_id: first.id,
        module_version_number: 1,
      },
    ]);
  });

  it('can be in the tenant file, where an action fails whose module is not published', async () => {
    await server.stop();
    const actions = [
      {
        name: 'Uses',
        code: action(`require('actions:shared')`),
        deployed: true,
        supported_triggers: [{ id: TRIGGER }],
        modules: [{ module_name: 'shared', module_version_number: 1 }],
      },
    ];
    const file = (all_changes_published: boolean) => ({
      ...tenant,
      actions,
      actionModules: [{ name: 'shared', code: `module.exports = 'of the file';`, all_changes_published }],
      triggers: { [TRIGGER]: [{ action_name: 'Uses' }] },
    });
    expect(readTenant(file(false)).report.join()).to.contain(
      'there is no module shared that is published in that version: Uses fails until there is',
    );
    server = await startManaged(file(false));
    expect((await ask()).status).to.equal(403);
    await server.stop();
    server = await startManaged(file(true));
    expect(await said()).to.equal('of the file');
  });
});
