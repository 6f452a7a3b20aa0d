import { expect } from 'chai';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { PAGES } from './pages.ts';
import { type Site, startSite } from './site.ts';

const COOKIE = '__Host-gatehouse_csrf';

describe('protection against cross-site request forgery', () => {
  let site: Site;

  before(async () => {
    site = await startSite(PAGES);
  });
  after(() => site?.stop());

  const token = async (agent: Agent): Promise<string> =>
    readForm(await agent.get('/login'), '_csrf').fields._csrf ?? '';
  const post = (agent: Agent, _csrf?: string, headers: Record<string, string> = {}): Promise<Answer> =>
    agent.request('/after', { form: _csrf === undefined ? {} : { _csrf }, headers });
  const refused = async (answer: Answer) => {
    expect(answer.status).to.equal(403);
    expect(answer.text).to.contain('This page has expired').and.to.contain('This form has expired.');
  };

  it('accepts a form whose token matches the cookie', async () => {
    const agent = createAgent(site);
    expect((await post(agent, await token(agent))).text).to.equal('accepted');
  });

  it('keeps the token in a cookie that only this host can set and no script can read', async () => {
    const { headers } = await createAgent(site).get('/login');
    const [cookie = ''] = headers['set-cookie'] ?? [];
    const [pair = '', ...attributes] = cookie.split('; ');
    expect(pair).to.match(new RegExp(`^${COOKIE}=[\\w-]{43}$`));
    expect(attributes.map((attribute) => attribute.toLowerCase())).to.have.members([
      'path=/',
      'secure',
      'httponly',
      'samesite=lax',
    ]);
  });

  it('uses one token for all tabs of a browser', async () => {
    const agent = createAgent(site);
    const [first, second] = [await token(agent), await token(agent)];
    expect(first).to.equal(second);
    expect((await post(agent, first)).status).to.equal(200);
    expect((await post(agent, second)).status).to.equal(200);
  });

  it('rejects a form without a token', async () => {
    const agent = createAgent(site);
    await token(agent);
    await refused(await post(agent));
    await refused(await post(agent, ''));
  });

  it('rejects a form without the cookie', async () => {
    await refused(await post(createAgent(site), await token(createAgent(site))));
  });

  it("rejects another browser's token", async () => {
    const agent = createAgent(site);
    await token(agent);
    await refused(await post(agent, await token(createAgent(site))));
  });

  it('rejects a token of the wrong length, and a repeated one', async () => {
    const agent = createAgent(site);
    const valid = await token(agent);
    await refused(await post(agent, valid.slice(0, -1)));
    await refused(await post(agent, `${valid}A`));
    const twice = await agent.request('/after', {
      form: [
        ['_csrf', valid],
        ['_csrf', valid],
      ],
    });
    await refused(twice);
  });

  it('rejects a cookie that is not a token, even if the form has the same value', async () => {
    for (const planted of ['', 'short', 'a b'])
      await refused(await post(createAgent(site), planted, { cookie: `${COOKIE}=${planted}` }));
    const [{ headers }] = [
      await createAgent(site).request('/login', { headers: { cookie: `${COOKIE}=short` } }),
    ];
    expect(headers['set-cookie']?.[0]).to.contain(COOKIE);
  });

  for (const origin of ['https://evil.example', 'null', 'http://localhost', 'https://localhost'])
    it(`rejects a form from the origin ${origin}, even with a valid token`, async () => {
      const agent = createAgent(site);
      await refused(await post(agent, await token(agent), { origin }));
    });

  for (const fetchSite of ['cross-site', 'same-site'])
    it(`rejects a ${fetchSite} request, even with a valid token`, async () => {
      const agent = createAgent(site);
      await refused(await post(agent, await token(agent), { 'sec-fetch-site': fetchSite }));
    });

  it('accepts a form whose Origin and Sec-Fetch-Site name this server', async () => {
    const agent = createAgent(site);
    const headers = { origin: site.url, 'sec-fetch-site': 'same-origin' };
    expect((await post(agent, await token(agent), headers)).text).to.equal('accepted');
  });

  describe('in a browser', () => {
    let browser: TestBrowser;
    before(async () => {
      browser = await launchBrowser(site.ca);
    });
    after(() => browser?.close());

    it('rejects a form on a page of another origin', async () => {
      const page = await (await browser.newContext()).newPage();
      await page.goto(`${site.url}/login`);
      const stolen = await page.locator('input[name=_csrf]').inputValue();
      // Even with the right token: the browser does not send the cookie, and names the other origin.
      const body = `<form method="post" action="${site.url}/after"><input name="_csrf" value="${stolen}"><button>go</button></form>`;
      await page.route('http://localhost:1/', (route) => route.fulfill({ contentType: 'text/html', body }));
      await page.goto('http://localhost:1/');
      const before = site.posted.length;
      await page.getByRole('button').click();
      await page.getByRole('heading', { name: 'This page has expired' }).waitFor();
      expect(site.posted.length).to.equal(before);
    });

    it('accepts forms that are open in two tabs', async () => {
      const context = await browser.newContext();
      const tabs = [await context.newPage(), await context.newPage()];
      for (const tab of tabs) await tab.goto(`${site.url}/account`);
      for (const tab of tabs) {
        await tab.getByRole('button', { name: 'Continue' }).click();
        await tab.getByText('accepted').waitFor();
      }
    });
  });
});
