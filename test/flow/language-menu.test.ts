// The menu of languages on the pages for users: the choice is remembered and precedes what requests ask for.
import { expect } from 'chai';
import { type Agent, createAgent } from '../support/agent.ts';
import { tenant, WEB_CALLBACK, webRequest } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

const german = { 'accept-language': 'de' };

describe('the menu of languages', () => {
  let server: TestServer;
  const settings = { ...tenant.tenant, enabled_locales: ['en', 'de', 'ar'] };
  before(async () => {
    server = await startServer({ tenant: { ...tenant, tenant: { ...settings, language_menu: true } } });
  });
  after(() => server?.stop());

  const openLogin = async (agent: Agent, more: Record<string, string> = {}) => {
    const query = new URLSearchParams(webRequest({ redirect_uri: WEB_CALLBACK, ...more }));
    const { location } = await agent.get(`/authorize?${query}`, german);
    return { path: new URL(location).pathname, page: await agent.get(location, german) };
  };
  const choose = (agent: Agent, language: string, back: string, headers: Record<string, string> = {}) =>
    agent.request('/u/language', { form: { language, back }, headers: { origin: server.url, ...headers } });

  it('names the languages of the tenant, each in itself, and marks the one that is shown', async () => {
    const { path, page } = await openLogin(createAgent(server));
    expect(page.text).to.contain('action="/u/language"').and.to.contain(`name="back" value="${path}"`);
    expect(page.text).to.contain('<option value="de" lang="de" selected>Deutsch</option>');
    expect(page.text).to.contain('<option value="ar" lang="ar">العربية</option>');
  });

  it('leads back to the page in the language, which later requests have, too, whatever they ask for', async () => {
    const agent = createAgent(server);
    const { path } = await openLogin(agent);
    const answer = await choose(agent, 'ar', path);
    expect([answer.status, answer.location]).to.deep.equal([303, `${server.url}${path}`]);
    expect(String(answer.headers['set-cookie'])).to.match(
      /^__Host-gatehouse_language=ar; path=\/; expires=[^;]+; samesite=lax; secure; httponly$/i,
    );
    expect((await agent.get(path, german)).headers['content-language']).to.equal('ar');
    const { page } = await openLogin(agent, { ui_locales: 'en' });
    expect(page.headers['content-language']).to.equal('ar');
  });

  it('takes no language that the tenant lacks, and leads to no other server', async () => {
    for (const language of ['fr', 'de; Domain=example.test', '']) {
      const answer = await choose(createAgent(server), language, '/u/x');
      expect(answer.headers['set-cookie'], language).to.equal(undefined);
    }
    for (const back of [
      'https://evil.example',
      '//evil.example/x',
      '/\\evil.example',
      'javascript:alert(1)',
      `//${new URL(server.url).host}//evil.example`,
      '/.//evil.example',
      '/u/../..//evil.example',
      '',
    ])
      expect((await choose(createAgent(server), 'de', back)).headers.location, back).to.equal('/');
  });

  it('takes no form of another site', async () => {
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }])
      expect((await choose(createAgent(server), 'ar', '/', headers)).status).to.equal(403);
  });

  it('is not on a page that answers a post, and not there unless the tenant wants it', async () => {
    const agent = createAgent(server);
    const { page } = await openLogin(agent);
    const [, action = ''] = /<form[^>]* action="(\/u\/[^"]+)"/.exec(page.text) ?? [];
    const [, csrf = ''] = /name="_csrf" value="([^"]+)"/.exec(page.text) ?? [];
    const form = { _csrf: csrf, username: '', password: '' };
    const refused = await agent.request(action, { form, headers: { origin: server.url } });
    expect(refused.text).to.contain('<h1').and.to.not.contain('/u/language');
    const plain = await startServer({ tenant: { ...tenant, tenant: settings } });
    try {
      const other = createAgent(plain);
      const query = new URLSearchParams(webRequest({ redirect_uri: WEB_CALLBACK }));
      const { location = '' } = await other.get(`/authorize?${query}`);
      expect((await other.get(location)).text)
        .to.contain('<h1')
        .and.to.not.contain('/u/language');
      const form = { language: 'ar', back: '/' };
      const answer = await other.request('/u/language', { form, headers: { origin: plain.url } });
      expect(answer.headers['set-cookie']).to.equal(undefined);
    } finally {
      await plain.stop();
    }
  });
});
