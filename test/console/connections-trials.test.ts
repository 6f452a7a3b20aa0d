// "Try connection" for the ways in beside OAuth 2.0: OpenID providers, and databases elsewhere.
import { expect } from 'chai';
import { type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { tenant } from '../support/flows.ts';
import {
  elsewhereOptions,
  KEY,
  type LegacyDatabase,
  startLegacyDatabase,
} from '../support/legacy-database.ts';
import { type OpenIdProvider, signingKey, startOpenIdProvider } from '../support/openid-provider.ts';
import type { TestServer } from '../support/server.ts';

const SECRET = 'upstream-secret-of-thirty-two-bytes!';

describe('connections that are tried at the console', () => {
  let provider: OpenIdProvider;
  let legacy: LegacyDatabase;
  let server: TestServer;
  let owner: ConsoleAgent;

  before(async () => {
    provider = await startOpenIdProvider(await signingKey('k1'));
    legacy = await startLegacyDatabase();
    legacy.add('grace@old.test', 'Correct-Horse-9');
    const discovery_url = `${provider.url}/.well-known/openid-configuration`;
    const options = { type: 'back_channel', discovery_url, client_id: 'gatehouse', client_secret: SECRET };
    server = await startConsole({
      tenant: {
        ...tenant,
        databases: [...tenant.databases, { name: 'old', options: elsewhereOptions(legacy) }],
        connections: [{ name: 'acme', strategy: 'oidc', options }],
      },
    });
    owner = await openConsole(server);
  });
  after(async () => {
    await server?.stop();
    await Promise.all([provider?.stop(), legacy?.stop()]);
  });

  const pathOf = async (name: string) => {
    const [found] = await server.store.collection('connections').findBy('name', name);
    return `/console/connections/${found?.id}`;
  };

  it('show what an OpenID provider publishes and answers, without its tokens', async () => {
    const before = await server.store.collection('users').count();
    const page = await owner.post(`${await pathOf('acme')}/try`);
    const [, href = ''] = /class="button primary" href="([^"]+)" rel/.exec(page.text) ?? [];
    const gone = await fetch(href.replaceAll('&amp;', '&'), { redirect: 'manual' });
    const back = await owner.agent.get(gone.headers.get('location') ?? '');
    const { text } = await owner.get(back.location);
    expect(text).to.contain('The login is good').and.contain('<li class="profile">');
    expect(text).to.contain('/.well-known/openid-configuration').and.contain(`POST ${provider.url}`);
    expect(text)
      .to.not.contain(SECRET)
      .and.not.match(/eyJ[\w-]+\.eyJ/);
    expect(await server.store.collection('users').count()).to.equal(before);
  });

  it('ask a database elsewhere by its script, and make nobody of who is there', async () => {
    const before = await server.store.collection('users').count();
    const typed = { identifier: 'grace@old.test', password: 'Correct-Horse-9' };
    const right = await owner.post(`${await pathOf('old')}/try`, typed);
    expect(right.text).to.contain('The login is good').and.contain('<li class="script">');
    expect(right.text)
      .to.contain('<li class="profile">')
      .and.not.contain(KEY)
      .and.not.contain(typed.password);
    const wrong = await owner.post(`${await pathOf('old')}/try`, { ...typed, password: 'Wrong-Horse-1' });
    expect(wrong.text).to.contain('invalid_grant').and.not.contain('Wrong-Horse-1');
    expect(await server.store.collection('users').count()).to.equal(before);
  });
});
