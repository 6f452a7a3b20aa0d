// Logins with a SAML service provider by another author.
import { ValidateInResponseTo } from '@node-saml/node-saml';
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { USER } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { ACS, posted, samlClient, serviceProvider, signOn, startSamlServer } from './support.ts';

/** The answer must be to a request that was made, and is accepted once. */
const ANSWERED = { validateInResponseTo: ValidateInResponseTo.always };
const CLAIMS = 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/';

describe('a SAML login', () => {
  let server: TestServer;

  before(async () => {
    server = await startSamlServer([samlClient('sp'), samlClient('other')]);
  });
  after(() => server.stop());

  it('answers an AuthnRequest by HTTP-Redirect with a signed assertion by HTTP-POST', async () => {
    const agent = createAgent(server);
    const { profile, posted } = await signOn(agent, server, await serviceProvider(server, 'sp', ANSWERED));
    expect(posted.action).to.equal(ACS);
    expect(posted.fields.RelayState).to.equal('the-relay-state');
    expect(profile.nameID).to.equal(USER.email);
    expect(profile.issuer).to.equal('urn:localhost');
    expect(profile[`${CLAIMS}emailaddress`]).to.equal(USER.email);
    expect(profile[`${CLAIMS}nameidentifier`]).to.match(/^auth0\|[0-9a-f]{24}$/);
    expect(profile.sessionIndex).to.be.a('string').and.not.equal('');
  });

  it('answers two tabs with the same SessionIndex', async () => {
    const agent = createAgent(server);
    await signOn(agent, server, await serviceProvider(server, 'other'));
    const tabs = await Promise.all(
      [1, 2].map(async () => {
        const sp = await serviceProvider(server, 'sp');
        const started = await agent.get(await sp.getAuthorizeUrlAsync('', undefined, {}));
        return (await agent.get(started.location)).location;
      }),
    );
    const pages = await Promise.all(tabs.map((address) => agent.get(address)));
    const indexes = pages.map((page) => / SessionIndex="([^"]*)"/.exec(posted(page).xml)?.[1]);
    expect(indexes[0]).to.be.a('string').and.equal(indexes[1]);
  });

  it('is bound to the browser by a cookie that a post from another site includes', async () => {
    const { headers } = await createAgent(server).get(
      await (await serviceProvider(server, 'sp')).getAuthorizeUrlAsync('', undefined, {}),
    );
    expect(String(headers['set-cookie'])).to.match(
      /^__Host-gatehouse_request=[^;]*;.*samesite=none; secure; httponly/i,
    );
  });

  it('answers the second service provider of a session without asking again', async () => {
    const agent = createAgent(server);
    await signOn(agent, server, await serviceProvider(server, 'sp'));
    const sp = await serviceProvider(server, 'other');
    const redirected = await agent.get(await sp.getAuthorizeUrlAsync('', undefined, {}));
    const started = await agent.get(redirected.location);
    const page = await agent.get(started.location);
    expect(page.text).to.include('name="SAMLResponse"');
  });
});
