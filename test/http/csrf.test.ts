import { expect } from 'chai';
import { type Agent, type Answer, createAgent, readForm } from '../support/agent.ts';
import { launchBrowser, type TestBrowser } from '../support/browser.ts';
import { PAGES } from './pages.ts';
import { type Site, startSite } from './site.ts';

const COOKIE = '__Host-gatehouse_csrf';

describe('cross-site request forgery', () => {
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

  it('is kept out by a token that the page and the browser both have', async () => {
    const agent = createAgent(site);
    expect((await post(agent, await token(agent))).text).to.equal('accepted');
  });

  it('keeps the token in a cookie that only this host can set, and no script can read', async () => {
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

  it('leaves one token to all tabs of a browser', async () => {
    const agent = createAgent(site);
    const [first, second] = [await token(agent), await token(agent)];
    expect(first).to.equal(second);
    expect((await post(agent, first)).status).to.equal(200);
    expect((await post(agent, second)).status).to.equal(200);
  });

  it('is refused without a token in the form', async () => {
    const agent = createAgent(site);
    await token(agent);
    await refused(await post(agent));
    await refused(await post(agent, ''));
  });

  it('is refused without the cookie', async () => {
    await refused(await post(createAgent(site), await token(createAgent(site))));
  });

  it("is refused with another browser's token", async () => {
    const agent = createAgent(site);
    await token(agent);
    await refused(await post(agent, await token(createAgent(site))));
  });

  it('is refused with a token of the wrong length, or several', async () => {
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

  it('is refused with a cookie that is no token of ours, whatever the form says', async () => {
    for (const planted of ['', 'short', 'a b'])
      await refused(await post(createAgent(site), planted, { cookie: `${COOKIE}=${planted}` }));
    const [{ headers }] = [
      await createAgent(site).request('/login', { headers: { cookie: `${COOKIE}=short` } }),
    ];
    expect(headers['set-cookie']?.[0]).to.contain(COOKIE);
  });

  for (const origin of ['https://evil.example', 'null', 'http://localhost', 'https://localhost'])
    it(`is refused from the origin ${origin}, with a valid token`, async () => {
      const agent = createAgent(site);
      await refused(await post(agent, await token(agent), { origin }));
    });

  for (const fetchSite of ['cross-site', 'same-site'])
    it(`is refused when the browser calls the request ${fetchSite}, with a valid token`, async () => {
      const agent = createAgent(site);
      await refused(await post(agent, await token(agent), { 'sec-fetch-site': fetchSite }));
    });

  it('is not seen in what a browser says of a form of ours', async () => {
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

    it('does not get through from a page of another origin', async () => {
      const page = await (await browser.newContext()).newPage();
      await page.goto(`${site.url}/login`);
      const stolen = await page.locator('input[name=_csrf]').inputValue();
      // Even with the right token: the cookie is not sent along, and the browser says where this is from.
      const body = `<form method="post" action="${site.url}/after"><input name="_csrf" value="${stolen}"><button>go</button></form>`;
      await page.route('http://localhost:1/', (route) => route.fulfill({ contentType: 'text/html', body }));
      await page.goto('http://localhost:1/');
      const before = site.posted.length;
      await page.getByRole('button').click();
      await page.getByRole('heading', { name: 'This page has expired' }).waitFor();
      expect(site.posted.length).to.equal(before);
    });

    it('does not stop forms that are open in two tabs', async () => {
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
