// An action may be what denies access, so its removal requires that its bindings are removed, too.
import { expect } from 'chai';
import { startManaged } from '../management/support.ts';
import { createAgent } from '../support/agent.ts';
import { logIn, responseOf, tenant, webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { bindActions, managed } from './support.ts';

describe('the removal of an action', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged(tenant);
  });
  after(() => server.stop());

  it('is refused while it is bound, unless it is forced, which also removes its bindings', async () => {
    const code = `exports.onExecutePostLogin = async (event, api) => api.access.deny('Nobody.');`;
    const [gate = '', other = ''] = await bindActions(server, 'post-login', { code }, { code });
    const login = async () => responseOf(await logIn(createAgent(server), server, webRequest()));
    const bound = async () => {
      const { body } = await managed(server, 'GET', '/actions/triggers/post-login/bindings');
      return body.bindings.map(({ action }: { action: { id: string } }) => action.id);
    };
    for (const query of ['', '?force=false']) {
      const refused = await managed(server, 'DELETE', `/actions/actions/${gate}${query}`);
      expect(refused.status).to.equal(409);
    }
    expect(await bound()).to.deep.equal([gate, other]);
    expect(await login()).to.include({ error: 'access_denied' });
    expect((await managed(server, 'DELETE', `/actions/actions/${gate}?force=true`)).status).to.equal(204);
    expect(await bound()).to.deep.equal([other]);
    expect(await login()).to.include({ error: 'access_denied' });
    // One that is no longer bound can be removed without force.
    await managed(server, 'PATCH', '/actions/triggers/post-login/bindings', { bindings: [] });
    expect((await managed(server, 'DELETE', `/actions/actions/${other}`)).status).to.equal(204);
    expect(await login()).to.have.property('code');
  });
});
