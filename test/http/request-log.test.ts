// The log line of each request, at level debug.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { pkce, spaRequest, tenant } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('the request log', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant });
  });
  after(() => server?.stop());

  it('names the method and path that were requested, without the query, even if the engine changes them', async () => {
    const agent = createAgent(server);
    await agent.request('/authorize', { form: spaRequest(pkce().challenge) });
    await agent.get('/nowhere?code=a-code');
    const lines = server
      .logged()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => msg === 'request');
    expect(lines.map(({ method, path }) => `${method} ${path}`)).to.deep.equal([
      'POST /authorize',
      'GET /nowhere',
    ]);
    expect(server.logged()).not.to.contain('a-code');
  });
});
