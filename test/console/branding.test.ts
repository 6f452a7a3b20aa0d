// Branding in the console: look with preview, messages and texts; roles; hostile values.
import { expect } from 'chai';
import { createAgent } from '../support/agent.ts';
import { addressOf, type ConsoleAgent, openConsole, startConsole } from '../support/console.ts';
import { authorize, follow, pkce, spaRequest, tenant } from '../support/flows.ts';
import { messagesTo } from '../support/inbox.ts';
import type { TestServer } from '../support/server.ts';
import { expectFaultAt } from './forms.ts';

const HOSTILE = '</style></textarea><script>alert(1)</script>"><img src=x onerror=alert(2)>';
const PATH = '/console/branding';

describe('branding in the console', () => {
  let server: TestServer;
  let owner: ConsoleAgent;
  let viewer: ConsoleAgent;
  let support: ConsoleAgent;

  before(async () => {
    server = await startConsole({
      tenant: {
        ...tenant,
        attackProtection: {
          rateLimits: {
            ...tenant.attackProtection.rateLimits,
            passwordlessDestination: { capacity: 3, perMinute: 1 },
          },
        },
        connections: [
          { name: 'mails', strategy: 'email', options: {} },
          { name: 'texts', strategy: 'sms', options: { template: 'Your code: {{ code }}' } },
        ],
      },
    });
    owner = await openConsole(server);
    viewer = await openConsole(server, 'viewer');
    support = await openConsole(server, 'support');
  });
  after(() => server?.stop());

  const tenantNow = async () => {
    const record = await server.store.collection('tenant').get('tenant');
    if (record === undefined) throw new Error('there is no tenant');
    return record;
  };
  const loginPage = async () => {
    const agent = createAgent(server);
    return follow(agent, await authorize(agent, spaRequest(pkce().challenge)), server.url);
  };
  const tokenOf = async (who: ConsoleAgent) =>
    /name="_csrf" value="([^"]+)"/.exec((await who.get('/console')).text)?.[1] ?? '';

  describe('the look', () => {
    it('is changed by a form, and then used by the pages', async () => {
      const page = await owner.get(PATH);
      expect(page.status).to.equal(200);
      expect(page.headers['content-security-policy']).to.contain("frame-src 'self'");
      expect((await owner.post(PATH, { 'brand.colors.primary': '#123456' })).status).to.equal(303);
      expect((await tenantNow()).branding?.colors).to.include({ primary: '#123456' });
      expect((await loginPage()).text).to.contain('--primary:#123456');
      expect(await server.store.collection('documents').findBy('kind', 'theme')).to.have.length(0);
    });

    it('includes a theme, which can be created, changed and deleted, keeping its other members', async () => {
      await owner.post(PATH, {
        'theme.colors.widget_background': '#fafafa',
        'theme.widget.logo_height': '40',
      });
      const [made] = await server.store.collection('documents').findBy('kind', 'theme');
      expect(made?.body).to.deep.include({
        colors: { widget_background: '#fafafa' },
        widget: { logo_height: 40 },
      });
      await owner.post(PATH, { 'theme.colors.error': '#aa0000' });
      const [after] = await server.store.collection('documents').findBy('kind', 'theme');
      expect(after?.body).to.deep.include({ colors: { widget_background: '#fafafa', error: '#aa0000' } });
      const refused = await owner.post(PATH, { 'theme.widget.logo_url': 'http://plain.example.test/a.png' });
      expect(refused.status).to.equal(400);
      expect(refused.text).to.contain('http://plain.example.test/a.png');
      expectFaultAt(refused, 'theme-widget-logo_url', 'Invalid URL');
      const wrong = await owner.post(PATH, { 'theme.fonts.title.size': 'large' });
      expectFaultAt(wrong, 'theme-fonts-title-size', 'Expected type number but found type string');
      expectFaultAt(await owner.post(PATH, { 'brand.colors.primary': 'red' }), 'brand-colors-primary', '#');
      expect((await owner.post(`${PATH}/theme/delete`)).status).to.equal(303);
      expect(await server.store.collection('documents').findBy('kind', 'theme')).to.have.length(0);
    });

    it('is previewed on the real pages without changing anything', async () => {
      const before = (await tenantNow()).branding;
      const drafted = await owner.post(`${PATH}/preview`, {
        'brand.colors.primary': '#654321',
        'theme.colors.widget_background': '#fefefe',
        page: 'signup',
        language: 'ar',
        scheme: 'dark',
      });
      expect(drafted.status).to.equal(200);
      expect(drafted.text).to.contain('--primary:#654321').and.contain('dir="rtl"').and.contain('lang="ar"');
      expect(drafted.text).to.contain('name="password"').and.not.contain('prefers-color-scheme');
      expect((await tenantNow()).branding).to.deep.equal(before);
    });

    it('is previewed in a frame of the console only, without scripts or forms', async () => {
      const token = await tokenOf(owner);
      for (const page of [
        'login',
        'identifier',
        'password',
        'signup',
        'code',
        'mfa',
        'enroll',
        'consent',
      ].concat(['forgot', 'reset', 'logout', 'error', 'no-such-page', '__proto__'])) {
        const shown = await owner.agent.get(`${PATH}/preview?page=${page}&_csrf=${token}`);
        expect(shown.status, page).to.equal(200);
        const policy = shown.headers['content-security-policy'] ?? '';
        expect(policy).to.contain("frame-ancestors 'self'").and.contain("form-action 'none'");
        expect(policy).to.contain('sandbox allow-same-origin').and.not.contain('script-src');
        expect(shown.headers['x-frame-options']).to.equal('SAMEORIGIN');
      }
      // Other pages cannot be framed.
      expect((await owner.get(PATH)).headers['content-security-policy']).to.contain("frame-ancestors 'none'");
      expect((await loginPage()).headers['content-security-policy']).to.contain("frame-ancestors 'none'");
    });

    it("is previewed only for an administrator with the console's token", async () => {
      const framed = { 'sec-fetch-dest': 'iframe' };
      expect((await owner.agent.get(`${PATH}/preview`, framed)).status).to.equal(403);
      expect((await createAgent(server).get(`${PATH}/preview`)).status).to.equal(303);
      const posted = await owner.agent.request(`${PATH}/preview`, {
        form: { page: 'login', _csrf: 'a'.repeat(43) },
      });
      expect(posted.status).to.equal(403);
    });

    it('turns hostile values into neither markup nor style rules', async () => {
      const { text } = await owner.post(`${PATH}/preview`, {
        'brand.colors.primary': HOSTILE,
        'brand.logo_url': `https://x.example.test/${HOSTILE}`,
        'brand.font.url': `https://x.example.test/${HOSTILE}`,
        'theme.page_background.background_image_url': `https://x.example.test/${HOSTILE}`,
      });
      expect(text).to.not.contain('<script>alert').and.not.contain('<img src=x');
      const scripted = await owner.post(`${PATH}/preview`, { 'brand.logo_url': 'javascript:alert(1)' });
      expect(scripted.text).to.not.contain('javascript:');
    });

    it('is shown inside the page template, which the form keeps', async () => {
      const source =
        '<!doctype html><html><head>{%- auth0:head -%}</head><body><b>Framed</b>{%- auth0:widget -%}</body></html>';
      expect((await owner.post(`${PATH}/template`, { source: '<html>', order: 'save' })).status).to.equal(
        400,
      );
      expect((await owner.post(`${PATH}/template`, { source, order: 'save' })).status).to.equal(303);
      await owner.post(PATH, { 'brand.colors.primary': '#123457' });
      expect((await loginPage()).text).to.contain('<b>Framed</b>');
      const shown = await owner.post(`${PATH}/preview`, { page: 'login' });
      expect(shown.text).to.contain('<b>Framed</b>');
      expect((await owner.get('/console')).text).to.not.contain('<b>Framed</b>');
      await owner.post(`${PATH}/template`, { order: 'remove' });
      expect((await loginPage()).text).to.not.contain('<b>Framed</b>');
    });
  });

  describe('messages', () => {
    const AT = `${PATH}/messages/verify_email`;
    const written = { from: '', subject: 'Hello {{ user.name }}', body: '<p>Go: {{ url }}</p>' };

    it('are listed, with those of connections', async () => {
      const { text } = await owner.get(`${PATH}/messages`);
      expect(text).to.contain(AT).and.contain('Code by SMS: texts').and.contain('Code by e-mail: mails');
      expect((await owner.get(`${PATH}/messages/change_password`)).status).to.equal(404);
    });

    it('can be replaced, switched off, and reset to the default', async () => {
      expect((await owner.post(AT, { ...written, order: 'save' })).status).to.equal(303);
      const find = async () =>
        (await tenantNow()).emailTemplates?.find(({ template }) => template === 'verify_email');
      expect(await find()).to.include({ subject: written.subject, body: written.body, enabled: true });
      expect((await owner.get(AT)).text).to.contain('Hello Ada Lovelace');
      await owner.post(AT, { ...written, switches: '1', order: 'save' });
      expect((await find())?.enabled).to.equal(false);
      await owner.post(AT, { ...written, switches: '1', enabled: 'true', order: 'reset' });
      expect(await find()).to.not.have.any.keys('subject', 'body');
    });

    it('are not saved when their template is broken, and show the fault', async () => {
      const broken = await owner.post(AT, { ...written, body: '{% if %', order: 'save' });
      expect(broken.status).to.equal(400);
      expectFaultAt(broken, 'body', 'not closed');
    });

    it('are previewed without scripts, whatever they contain', async () => {
      const shown = await owner.post(`${AT}/preview`, {
        ...written,
        body: '<script>alert(1)</script>{{ user.name }}',
      });
      expect(shown.status).to.equal(200);
      expect(shown.text).to.contain('Ada Lovelace');
      const policy = shown.headers['content-security-policy'] ?? '';
      expect(policy)
        .to.match(/sandbox$/)
        .and.contain("default-src 'none'")
        .and.contain("frame-ancestors 'self'");
      expect(policy).to.not.contain('script-src');
      const editor = await owner.post(AT, { ...written, subject: HOSTILE, body: HOSTILE, order: 'send' });
      expect(editor.text).to.not.contain('<script>alert').and.not.contain('<img src=x');
    });

    it('are sent to the administrator only, up to a limit', async () => {
      const before = (await messagesTo(server, addressOf('owner'))).length;
      const sent = await owner.post(AT, { ...written, to: 'somebody@example.test', order: 'send' });
      expect(await messagesTo(server, 'somebody@example.test')).to.deep.equal([]);
      expect(sent.text).to.contain(`Sent to ${addressOf('owner')}`);
      const [newest] = await messagesTo(server, addressOf('owner'));
      expect(newest).to.include({ to: addressOf('owner'), subject: 'Hello Ada Lovelace' });
      expect((await messagesTo(server, addressOf('owner'))).length).to.equal(before + 1);
      const statuses = [];
      for (let n = 0; n < 12; n++)
        statuses.push((await owner.post(AT, { ...written, order: 'send' })).status);
      expect(statuses).to.include(429);
      expect(
        (await tenantNow()).emailTemplates?.find(({ template }) => template === 'verify_email')?.body,
      ).to.equal(undefined);
    });

    it('of connections are stored in the options, keeping the others', async () => {
      const [sms] = await server.store.collection('connections').findBy('name', 'texts');
      const at = `${PATH}/messages/${sms?.id}`;
      expect((await owner.get(at)).text).to.contain('Your code: {{ code }}');
      const shown = await owner.post(`${at}/preview`, { body: 'Code {{ code }}!' });
      expect(shown.text).to.equal('Code 123456!');
      expect(shown.headers['content-type']).to.contain('text/plain');
      await owner.post(at, { body: 'New: {{ code }}', order: 'save' });
      const [after] = await server.store.collection('connections').findBy('name', 'texts');
      expect(after?.options).to.deep.equal({ ...sms?.options, template: 'New: {{ code }}' });
    });

    it('are sent by SMS to an entered number, by administrators who may change them, up to a limit', async () => {
      const [sms] = await server.store.collection('connections').findBy('name', 'texts');
      const at = `${PATH}/messages/${sms?.id}`;
      const number = '+15550100199';
      const draft = { body: 'Look: {{ code }}', order: 'send' };
      for (const wrong of [{}, { number: '' }, { number: '12' }, { number: 'me@example.test' }]) {
        const refused = await owner.post(at, { ...draft, ...wrong });
        expect(refused.status).to.equal(400);
        expectFaultAt(refused, 'number', 'Enter a phone number');
        expect(refused.text).to.contain('Look: {{ code }}');
      }
      expect((await viewer.post(at, { ...draft, number })).status).to.equal(403);
      expect(await messagesTo(server, number)).to.deep.equal([]);
      const sent = await owner.post(at, { ...draft, number: '+1 (555) 010-0199' });
      expect(sent.text).to.contain(`Sent to ${number}`);
      expect((await messagesTo(server, number)).map(({ channel, text }) => [channel, text])).to.deep.equal([
        ['sms', 'Look: 123456'],
      ]);
      const statuses = [];
      for (let n = 0; n < 3; n++) statuses.push((await owner.post(at, { ...draft, number })).status);
      expect(statuses).to.deep.equal([200, 200, 429]);
      const editor = await openConsole(server, 'editor');
      expect(
        (await editor.post(at, { ...draft, number })).status,
        'limit shared by all administrators',
      ).to.equal(429);
      expect((await editor.post(at, { ...draft, number: '+15550100198' })).status).to.equal(200);
      expect(await messagesTo(server, number)).to.have.length(3);
    });
  });

  describe('texts', () => {
    const AT = `${PATH}/texts/login/de`;

    it('are shown with the default texts, in each language', async () => {
      const { text } = await owner.get(AT);
      expect(text).to.contain('name="text.login.title"').and.contain('${clientName}');
      expect((await owner.get(`${PATH}/texts?language=ar`)).text).to.contain(`${PATH}/texts/login/ar`);
      expect((await owner.get(`${PATH}/texts/login/xx`)).status).to.equal(404);
      expect((await owner.get(`${PATH}/texts/nothing/de`)).status).to.equal(404);
    });

    it('are used by the pages as text, and restored to the default by an empty field', async () => {
      await server.store.collection('documents').put({
        id: 'custom-text/login/en',
        kind: 'custom-text',
        body: { login: { unknownKey: 'stays' }, other: { a: 'b' } },
        created_at: '2026-01-01T00:00:00.000Z',
        updated_at: '2026-01-01T00:00:00.000Z',
      });
      const at = `${PATH}/texts/login/en`;
      expect((await owner.post(at, { 'text.login.title': `Ahoy ${HOSTILE}` })).status).to.equal(303);
      const kept = await server.store.collection('documents').get('custom-text/login/en');
      expect(kept?.body).to.deep.equal({
        login: { unknownKey: 'stays', title: `Ahoy ${HOSTILE}` },
        other: { a: 'b' },
      });
      const page = (await loginPage()).text;
      expect(page).to.contain('Ahoy &lt;/style').and.not.contain('<script>alert');
      const form = (await owner.get(at)).text;
      expect(form).to.contain('Ahoy &lt;').and.not.contain('<script>alert');
      await owner.post(at, { 'text.login.title': '' });
      expect((await loginPage()).text).to.not.contain('Ahoy');
    });
  });

  it("is limited to roles that may see or change it, and to the console's own forms", async () => {
    const changes: [string, Record<string, string>][] = [
      [PATH, { 'brand.colors.primary': '#000000' }],
      [`${PATH}/template`, { source: 'x', order: 'save' }],
      [`${PATH}/theme/delete`, {}],
      [`${PATH}/messages/verify_email`, { body: 'x', order: 'save' }],
      [`${PATH}/messages/verify_email`, { body: 'x', order: 'send' }],
      [`${PATH}/texts/login/de`, { 'text.login.title': 'x' }],
    ];
    const before = await tenantNow();
    for (const [path, form] of changes) {
      expect((await viewer.post(path, form)).status, path).to.equal(403);
      expect((await support.post(path, form)).status, path).to.equal(403);
      const forged = await owner.agent.request(path, { form: { ...form, _csrf: 'a'.repeat(43) } });
      expect(forged.status, path).to.equal(403);
      const nobody = await createAgent(server).request(path, { form });
      expect([nobody.status, new URL(nobody.location).pathname], path).to.deep.equal([303, '/authorize']);
    }
    for (const path of [
      PATH,
      `${PATH}/messages`,
      `${PATH}/texts`,
      `${PATH}/preview`,
      `${PATH}/messages/verify_email`,
    ]) {
      expect((await viewer.agent.get(path)).status, path).to.equal(200);
      expect((await support.get(path)).status, path).to.equal(403);
    }
    expect(await tenantNow()).to.deep.equal(before);
  });
});
