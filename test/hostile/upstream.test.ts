// Manipulated answers of providers, and providers that claim the users of others.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { follow, responseOf, tenant } from '../support/flows.ts';
import { json, type OAuth2Provider, optionsFor, startProvider } from '../support/oauth2-provider.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { fromProvider, logInUpstream, toProvider } from '../support/upstream-login.ts';

describe('an attacked login at a provider', () => {
  let acme: OAuth2Provider;
  let other: OAuth2Provider;
  let server: TestServer;
  let people = 0;
  before(async () => {
    [acme, other] = await Promise.all([startProvider(), startProvider()]);
    const social = (name: string, provider: OAuth2Provider) => ({
      name,
      strategy: 'oauth2',
      enabled_clients: ['web'],
      options: optionsFor(provider),
    });
    server = await startServer({
      tenant: { ...tenant, connections: [social('acme', acme), social('other', other)] },
    });
  });
  after(async () => {
    await server?.stop();
    await Promise.all([acme?.stop(), other?.stop()]);
  });
  beforeEach(() => {
    acme.user = { id: ++people, email: `mallory-${people}@example.test`, email_verified: true };
    other.user = { ...acme.user };
  });
  afterEach(() => {
    acme.profile = undefined;
  });

  for (const [provider, connection] of [
    ['auth0', 'users'],
    ['email', 'email'],
    ['sms', 'sms'],
    ['oauth2', 'other'],
    ['google-oauth2', 'google'],
    ['github', 'github'],
    ['oidc', 'corporate'],
    ['samlp', 'saml'],
    ['ad', 'directory'],
  ] as const) {
    it(`gets no account of ${provider} with the same verified address`, async () => {
      const email = String(acme.user.email);
      const identity = { connection, provider, addresses: { email }, unique: [] };
      const made = await server.users.create({ identity, profile: { email_verified: true } });
      const victim = 'user' in made ? made.user : undefined;
      expect(await logInUpstream(server)).to.have.property('code');
      expect((await server.users.get(`oauth2|acme|${people}`))?.email).to.equal(email);
      expect(await server.users.identitiesOf(victim?.id ?? '')).to.have.length(1);
      expect((await server.users.get(victim?.id ?? ''))?.logins_count).to.equal(0);
    });
  }

  it('is not answered by another provider: its code goes only to the provider of the request', async () => {
    const agent = createAgent(server);
    const asked = await toProvider(server, {}, agent);
    const fromOther = await toProvider(server, { connection: 'other' }, createAgent(server));
    const back = new URL(asked.back);
    back.searchParams.set('code', new URL(fromOther.back).searchParams.get('code') ?? '');
    const sent = other.seen.length;
    const told = responseOf(await fromProvider(server, { ...asked, back: back.href }));
    expect(told.error).to.be.a('string');
    expect(told).not.to.have.property('code');
    expect(other.seen.length).to.equal(sent);
  });

  it('is not answered in the name of another issuer', async () => {
    const login = await toProvider(server);
    const back = `${login.back}&iss=${encodeURIComponent(other.url)}`;
    const sent = acme.seen.length;
    expect(responseOf(await fromProvider(server, { ...login, back })).error).to.equal('access_denied');
    expect(acme.seen.length).to.equal(sent);
  });

  it("is not finished in somebody else's browser (login CSRF)", async () => {
    const mallory = await toProvider(server);
    const victim = await toProvider(server, {}, createAgent(server));
    expect((await victim.agent.get(mallory.back)).status).to.equal(400);
    const own = responseOf(await fromProvider(server, victim));
    expect(own).to.have.property('code');
  });

  it('does not finish another request of the same browser', async () => {
    const agent = createAgent(server);
    const one = await toProvider(server, { state: 'one' }, agent);
    const two = await toProvider(server, { state: 'two' }, agent);
    const on = await agent.get(one.back);
    const ticket = new URL(on.location).searchParams.get('ticket') ?? '';
    const uid = new URL(on.location).pathname;
    const elsewhere = await agent.get(
      (await agent.get(two.back)).location.replace(/ticket=.*/, `ticket=${ticket}`),
    );
    expect(elsewhere.status).to.equal(400);
    const told = responseOf(await follow(agent, await agent.get(`${uid}?ticket=${ticket}`), server.url));
    expect(told).to.include({ state: 'one' }).and.to.have.property('code');
    expect((await agent.get(`${uid}?ticket=${ticket}`)).status).to.equal(400);
  });

  it('fails when an answer has a code and an error, or a state in the wrong place', async () => {
    const login = await toProvider(server);
    const told = responseOf(
      await fromProvider(server, { ...login, back: `${login.back}&error=access_denied` }),
    );
    expect(told.error).to.equal('access_denied');
    const { agent, back } = await toProvider(server);
    const { pathname, searchParams } = new URL(back);
    const code = searchParams.get('code') ?? '';
    const split = await agent.request(`${pathname}?state=${searchParams.get('state')}`, { form: { code } });
    expect(split.status).to.equal(400);
  });

  for (const [what, profile] of [
    [
      'names of prototypes',
      `{"id":ID,"email":"m@x.test","__proto__":{"blocked":false,"polluted":1},"constructor":{"prototype":{"polluted":1}}}`,
    ],
    ['metadata that is a prototype', `{"id":ID,"app_metadata":{"__proto__":{"polluted":1}}}`],
    ['values of a thousand levels', `{"id":ID,"deep":${'['.repeat(1000)}${']'.repeat(1000)}}`],
    ['a name of fifty thousand characters', `{"id":ID,"name":"${'x'.repeat(50_000)}"}`],
    ['more than a profile may have', `{"id":ID,"text":"${'x'.repeat(150_000)}"}`],
  ] as const) {
    it(`accepts a profile with ${what} without harm`, async () => {
      acme.profile = (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(profile.replace('ID', String(people)));
      };
      const told = await logInUpstream(server);
      expect(Object.keys(told)).to.satisfy(
        (names: string[]) => names.includes('code') || names.includes('error'),
      );
      expect(({} as { polluted?: unknown }).polluted).to.equal(undefined);
      const user = await server.users.get(`oauth2|acme|${people}`);
      expect((user as { polluted?: unknown } | undefined)?.polluted).to.equal(undefined);
      expect(JSON.stringify(user ?? {}).length).to.be.below(10_000);
      acme.profile = (response) => json(response, acme.user);
      expect(await logInUpstream(server)).to.have.property('code');
    });
  }
});
