// The start page of development: the next steps, with values that work.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { startServer, type TestServer } from '../support/server.ts';

const HOSTILE = `"><img src=x onerror=alert(1)>'); {{ 7919 | times: 6101 }}`;

describe('the start page of development', () => {
  let server: TestServer;
  afterEach(() => server.stop());

  const home = async (clients: object[], env: Record<string, string> = {}) => {
    server = await startServer({ tenant: { clients, databases: [{ name: 'db' }] }, env });
    const { status, text } = await createAgent(server).get('/');
    expect(status).to.equal(200);
    // The quotes of programs are escaped in HTML.
    return text.replaceAll('&#39;', "'").replaceAll('&quot;', '"');
  };
  const frameworks = (text: string) =>
    [...text.matchAll(/<summary><bdi[^>]*>([^<]+)</g)].map(([, name]) => name);

  it('shows programs for the frameworks that can return to an application of the tenant file', async () => {
    const text = await home([
      {
        client_id: 'shop',
        name: 'Shop',
        app_type: 'spa',
        callbacks: ['http://localhost:4200', 'http://localhost:5173/'],
      },
      { client_id: 'old', name: 'Old', app_type: 'spa', callbacks: ['http://localhost:5173/in'] },
      {
        client_id: 'java',
        name: 'Java',
        app_type: 'regular_web',
        callbacks: ['http://localhost:8080/login/oauth2/code/gatehouse'],
      },
    ]);
    expect(frameworks(text)).to.deep.equal(['React', 'Vue', 'Angular', 'JavaScript', 'Spring Boot']);
    expect(text)
      .to.contain(`domain: '${new URL(server.url).host}'`)
      .and.to.contain(`clientId: 'shop'`);
    expect(text).to.contain(`redirect_uri: 'http://localhost:5173/'`);
    expect(text).to.contain(`redirect_uri: 'http://localhost:4200'`);
    expect(text).to.contain('CLIENT_SECRET is the client_secret of java').and.not.to.contain('5173/in');
  });

  it('names gatehouse init and the tests of an application, also where there are no applications', async () => {
    const text = await home([], { TENANT_FILE: 'own/tenant.yaml' });
    expect(frameworks(text)).to.deep.equal([]);
    expect(text)
      // A checkout names its own program: npx would fetch another package of that name.
      .to.match(/node \/\S+\/src\/cli\.ts init/)
      .and.to.contain(`startGatehouse({ tenant: 'own/tenant.yaml' })`);
    expect(text).not.to.contain('admin@example.test');
  });

  it('shows hostile values as text, and no secret', async () => {
    server = await startServer({
      tenant: {
        clients: [
          {
            client_id: 'web',
            name: 'Web',
            app_type: 'regular_web',
            client_secret: 'a-secret-of-the-application',
            callbacks: [`http://localhost:3001/callback?${HOSTILE}`],
          },
        ],
      },
    });
    const { status, text } = await createAgent(server).get('/');
    expect(status).to.equal(200);
    expect(text).to.contain('Express').and.not.to.contain('<img').and.not.to.contain('48313819');
    expect(text).not.to.contain('a-secret-of-the-application');
  });
});
