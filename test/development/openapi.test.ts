// The OpenAPI document of a development server.
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { tenant } from '../support/flows.ts';
import { undescribedParameters } from '../support/openapi.ts';
import { startServer, type TestServer } from '../support/server.ts';

describe('/openapi.json', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ tenant: { ...tenant, vendor_host: 'login.example' } });
  });
  after(() => server.stop());

  it('is valid OpenAPI 3.1 of this server, with the grant types of its tenant', async () => {
    const answer = await createAgent(server).get('/openapi.json');
    expect(answer.status).to.equal(200);
    const document = answer.json();
    const { errors } = await new Validator().validate(document);
    expect(errors).to.equal(undefined);
    expect(document.servers).to.deep.equal([{ url: server.url }]);
    const { content } = document.paths['/oauth/token'].post.requestBody;
    const grantTypes = content['application/json'].schema.anyOf.map(
      (body: { properties: { grant_type: { const: string } } }) => body.properties.grant_type.const,
    );
    const discovery = (await createAgent(server).get('/.well-known/openid-configuration')).json();
    expect(grantTypes).to.have.members(
      discovery.grant_types_supported.filter((type: string) => type !== 'implicit'),
    );
    expect(grantTypes).to.include('http://login.example/oauth/grant-type/password-realm');
  });

  it('describes every parameter', async () => {
    const document = (await createAgent(server).get('/openapi.json')).json() as {
      paths: Record<string, object>;
    };
    expect(undescribedParameters(document)).to.deep.equal([]);
  });

  it('names only paths that exist', async () => {
    const { paths } = (await createAgent(server).get('/openapi.json')).json();
    for (const [path, methods] of Object.entries<object>(paths)) {
      const { status } = await createAgent(server).request(path.replaceAll(/\{\w+\}/g, 'x'), {
        method: 'put' in methods ? 'PATCH' : 'PUT',
      });
      expect(status, path).to.equal(405);
    }
  });
});
