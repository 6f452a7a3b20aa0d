// Logging in to a service provider nobody here wrote: what is answered, and what it says.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { ACS, samlClient, serviceProvider, signOn, startSamlServer } from './support.ts';

const CLAIMS = 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/';

describe('logging in by SAML', () => {
  let server: TestServer;

  before(async () => {
    server = await startSamlServer([samlClient('sp'), samlClient('other')]);
  });
  after(() => server.stop());

  it('answers an AuthnRequest by HTTP-Redirect with a signed assertion by HTTP-POST', async () => {
    const agent = createAgent(server);
    const { profile, posted } = await signOn(agent, server, await serviceProvider(server, 'sp'));
    expect(posted.action).to.equal(ACS);
    expect(posted.fields.RelayState).to.equal('the-relay-state');
    expect(profile.nameID).to.equal(USER.email);
    expect(profile.issuer).to.equal('urn:localhost');
    expect(profile[`${CLAIMS}emailaddress`]).to.equal(USER.email);
    expect(profile[`${CLAIMS}nameidentifier`]).to.match(/^auth0\|[0-9a-f]{24}$/);
    expect(profile.sessionIndex).to.be.a('string').and.not.equal('');
  });

  it('answers the second service provider of a session without asking', async () => {
    const agent = createAgent(server);
    await signOn(agent, server, await serviceProvider(server, 'sp'));
    const sp = await serviceProvider(server, 'other');
    const redirected = await agent.get(await sp.getAuthorizeUrlAsync('', undefined, {}));
    const started = await agent.get(redirected.location);
    const page = await agent.get(started.location);
    expect(page.text).to.include('name="SAMLResponse"');
  });
});
