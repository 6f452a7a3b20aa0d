// The bindings of a trigger. A binding to an action that would never run is refused, because its operator relies on
// what it denies.
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { tenant } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { managed } from './support.ts';

const BINDINGS = '/actions/triggers/post-login/bindings';

describe('the bindings of a trigger', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(tenant);
  });
  after(() => server.stop());

  const make = async (
    name: string,
    trigger = 'post-login',
    code = 'exports.onExecutePostLogin = () => {};',
  ) => {
    const { body } = await managed(server, 'POST', '/actions/actions', {
      name,
      code,
      supported_triggers: [{ id: trigger }],
    });
    return String(body.id);
  };
  const deploy = (id: string) => managed(server, 'POST', `/actions/actions/${id}/deploy`);
  const bind = (...refs: { type: string; value: string }[]) =>
    managed(server, 'PATCH', BINDINGS, { bindings: refs.map((ref) => ({ ref })) });
  const bound = async () =>
    (await managed(server, 'GET', BINDINGS)).body.bindings.map(
      ({ action }: { action: { name: string } }) => action.name,
    );

  it('reject an action that was never deployed or has another trigger, and stay as they were', async () => {
    const [draft, other, good] = [
      await make('Draft'),
      await make('Other', 'credentials-exchange'),
      await make('Good'),
    ];
    await deploy(other);
    await deploy(good);
    const byId = (value: string) => ({ type: 'action_id', value });
    expect((await bind(byId(good))).status).to.equal(200);
    expect(await bind(byId(good), byId(draft))).to.deep.include({ status: 400 });
    expect((await bind(byId(draft))).body.message).to.equal('The action Draft is not deployed.');
    expect((await bind(byId(other))).body.message).to.equal('The action Other is of another trigger.');
    expect(await bound()).to.deep.equal(['Good']);
    await deploy(draft);
    expect((await bind(byId(draft), byId(good))).status).to.equal(200);
    expect(await bound()).to.deep.equal(['Draft', 'Good']);
  });

  it('accept the name or the id of an action, and the id of a present binding', async () => {
    const first = await make('First');
    const second = await make(first);
    await deploy(first);
    await deploy(second);
    expect((await bind({ type: 'action_name', value: first })).status).to.equal(200);
    expect(await bound()).to.deep.equal([first]);
    const [{ id }] = (await managed(server, 'GET', BINDINGS)).body.bindings;
    expect(
      (await bind({ type: 'action_id', value: first }, { type: 'binding_id', value: id })).status,
    ).to.equal(200);
    expect(await bound()).to.deep.equal(['First', first]);
    for (const type of ['action_name', 'action_id', 'binding_id'])
      expect((await bind({ type, value: 'nobody' })).status).to.equal(400);
  });

  it('show each action as it is now, have no secrets of their own, and reject unknown triggers', async () => {
    const id = await make('Shown');
    await deploy(id);
    await bind({ type: 'action_id', value: id });
    await managed(server, 'PATCH', `/actions/actions/${id}`, { name: 'Renamed', code: '// a draft' });
    const [{ action }] = (await managed(server, 'GET', BINDINGS)).body.bindings;
    expect(action).to.include({ id, name: 'Renamed', code: '// a draft', all_changes_deployed: false });
    expect(action.deployed_version).to.include({ number: 1, deployed: true });
    const secrets = [{ name: 'KEY', value: 'nobody-would-be-told-this' }];
    const bindings = [{ ref: { type: 'action_id', value: id }, secrets }];
    expect((await managed(server, 'PATCH', BINDINGS, { bindings })).status).to.equal(400);
    const nowhere = '/actions/triggers/nowhere/bindings';
    expect((await managed(server, 'GET', nowhere)).status).to.equal(404);
    expect((await managed(server, 'PATCH', nowhere, { bindings: [] })).status).to.equal(404);
  });

  it('of a tenant file name actions that count as deployed', async () => {
    const code = 'exports.onExecutePostLogin = () => {};';
    const supported_triggers = [{ id: 'post-login', version: 'v3' }];
    const of = await startManaged({
      ...tenant,
      actions: [
        { name: 'Filed', code, supported_triggers, deployed: true },
        { name: 'Draft', code, supported_triggers },
      ],
      triggers: { 'post-login': [{ action_name: 'Filed' }] },
    });
    const listed = async (deployed: boolean) =>
      (await managed(of, 'GET', `/actions/actions?deployed=${deployed}`)).body.actions;
    const [filed, ...others] = await listed(true);
    expect(others).to.deep.equal([]);
    expect(filed).to.include({ name: 'Filed', all_changes_deployed: true });
    expect(filed.deployed_version).to.include({ code, deployed: true, status: 'built' });
    expect((await listed(false)).map(({ name }: { name: string }) => name)).to.deep.equal(['Draft']);
    const { body } = await managed(of, 'PATCH', `/actions/actions/${filed.id}`, { code: '// a draft' });
    expect(body).to.include({ all_changes_deployed: false });
    expect(body.deployed_version).to.include({ code, deployed: true });
    await of.stop();
  });
});
