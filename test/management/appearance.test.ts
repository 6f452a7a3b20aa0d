// The appearance of pages, which takes effect with the next request: texts, colours, font, theme and page template.
import { expect } from 'chai';
import type { Store } from '../../src/store/contract.ts';
import { openStore } from '../../src/store/open.ts';
import { LANGUAGES } from '../../src/tenant/languages.ts';
import { tenant } from '../connections/passwordless/tenant.ts';
import { SLOW_FILTER } from '../liquid/support.ts';
import { createAgent } from '../support/agent.ts';
import { openPage } from '../support/browser-logins.ts';
import { webRequest } from '../support/flows.ts';
import type { TestServer } from '../support/server.ts';
import { until } from '../support/wait-until.ts';
import { callApi, startManaged } from './support.ts';

const TEMPLATE = `<!DOCTYPE html><html lang="{{ locale }}"><head>{%- auth0:head -%}
<style>.frame{color:red}</style></head>
<body class="frame"><header>{{ tenant.friendly_name }}: {{ application.name }}, {{ prompt.name }}</header>
{%- auth0:widget -%}<script>window.ours = true</script></body></html>`;
const EVIL = '<img src=x onerror=alert(1)>';

describe('changing the appearance of pages in a running server', () => {
  let server: TestServer;
  before(async () => {
    server = await startManaged({ ...tenant, tenant: { ...tenant.tenant, enabled_locales: ['en', 'de'] } });
  });
  after(() => server.stop());

  const page = (over: Record<string, string> = {}) =>
    openPage(createAgent(server), server, webRequest({ connection: 'users', ...over }));
  const texts = (prompt: string, language: string, body: object) =>
    callApi(server, 'PUT', `/prompts/${prompt}/custom-text/${language}`, body);
  const around = (template: unknown) =>
    callApi(server, 'PUT', '/branding/templates/universal-login', { template });

  it('shows the custom texts of a prompt, in their language and on their screen alone', async () => {
    const body = {
      login: {
        title: 'Hello at ${clientName}',
        buttonText: `Go ${EVIL}`,
        emailPlaceholder: 'Your mail',
        odd: 'no',
      },
      'another-screen': { title: 'no' },
    };
    expect((await texts('login', 'en', body)).status).to.equal(200);
    const shown = (await page()).text;
    expect(shown).to.contain('<h1>Hello at Web app</h1>').and.contain('Your mail');
    expect(shown).to.contain('Go &lt;img').and.not.contain('<img src=x');
    expect((await page({ ui_locales: 'de' })).text).not.to.contain('Hello at');
    expect((await page({ screen_hint: 'signup' })).text).not.to.contain('Your mail');
    expect((await texts('login', 'de', { login: { title: 'Hallo' } })).status).to.equal(200);
    expect((await page({ ui_locales: 'de' })).text).to.contain('<h1>Hallo</h1>');
    await texts('login', 'en', {});
    expect((await page()).text).to.contain('<h1>Welcome</h1>');
  });

  it('isolates the values in custom texts where the direction may differ', async () => {
    const title = 'مرحبًا في ${clientName}!';
    expect((await texts('login', 'ar', { login: { title } })).status).to.equal(200);
    await callApi(server, 'PATCH', '/tenants/settings', { enabled_locales: ['en', 'de', 'ar'] });
    expect((await page({ ui_locales: 'ar' })).text).to.contain('<h1>مرحبًا في \u2068Web app\u2069!</h1>');
    await callApi(server, 'PATCH', '/tenants/settings', { enabled_locales: ['en', 'de'] });
    await texts('login', 'ar', {});
  });

  it('shows custom texts of a language without a folder with the texts of the nearest one', async () => {
    await callApi(server, 'PATCH', '/tenants/settings', { enabled_locales: ['en', 'de-AT'] });
    await texts('login', 'de-AT', { login: { title: 'Servus' } });
    const shown = await page({ ui_locales: 'de' });
    expect(shown.headers['content-language']).to.equal('de-AT');
    expect(shown.text)
      .to.contain('<html lang="de-AT"')
      .and.to.contain('<h1>Servus</h1>')
      .and.to.contain('>Weiter<');
    await callApi(server, 'PATCH', '/tenants/settings', { enabled_locales: ['en', 'de'] });
  });

  it('uses all languages that there are while the tenant names none, and shows them', async () => {
    const enabled = async (body: object) => {
      expect((await callApi(server, 'PATCH', '/tenants/settings', body)).status).to.equal(200);
      const settings = await (await callApi(server, 'GET', '/tenants/settings')).json();
      return (settings as { enabled_locales: unknown }).enabled_locales;
    };
    const languageFor = async (ui_locales: string) =>
      (await page({ ui_locales })).headers['content-language'];
    expect(await languageFor('ar')).to.equal('en');
    expect(await enabled({ enabled_locales: null })).to.deep.equal(LANGUAGES);
    expect(await languageFor('ar')).to.equal('ar');
    expect(await languageFor('xx')).to.equal('en');
    // A tag without a folder is stored, and no page is in it.
    expect(await enabled({ enabled_locales: ['xx', 'de', 'en'] })).to.deep.equal(['xx', 'de', 'en']);
    expect(await languageFor('xx')).to.equal('de');
    expect((await callApi(server, 'PATCH', '/tenants/settings', { enabled_locales: [] })).status).to.equal(
      400,
    );
    await enabled({ enabled_locales: ['en', 'de'] });
  });

  it('replaces only known placeholders, and does not evaluate values', async () => {
    await texts('login', 'en', {
      login: { title: '${constructor} ${password} ${companyName} $& ${clientName' },
    });
    expect((await page()).text).to.contain('<h1>  Test tenant $&amp; ${clientName</h1>');
    await texts('login', 'en', {});
  });

  it("applies colours and font, and adds the font's origin to the policy", async () => {
    const font = { url: 'https://fonts.example.test/a.woff2?x=\\")}</style><script>' };
    await callApi(server, 'PATCH', '/branding', { colors: { primary: '#aa2200' }, font });
    const shown = await page();
    expect(shown.text).to.contain('#aa2200').and.contain('url("https://fonts.example.test/a.woff2');
    expect(shown.text).not.to.match(/<\/style><script>/);
    expect(shown.headers['content-security-policy']).to.contain('font-src https://fonts.example.test;');
    await callApi(server, 'PATCH', '/branding', { font: { url: 'javascript:alert(1)' } });
    expect((await page()).headers['content-security-policy']).not.to.contain('font-src');
  });

  it('escapes the host of a font in the Content-Security-Policy', async () => {
    const font = { url: 'https://fonts.example.test;sandbox,x/a.woff2' };
    await callApi(server, 'PATCH', '/branding', { font });
    const policy = (await page()).headers['content-security-policy'];
    expect(policy).to.contain('font-src https://fonts.example.test%3Bsandbox%2Cx;').and.not.contain(',');
    await callApi(server, 'PATCH', '/branding', { font: { url: '' } });
  });

  describe('with a theme', () => {
    const THEME = {
      borders: {
        buttons_style: 'pill',
        inputs_style: 'sharp',
        widget_corner_radius: 8,
        show_widget_shadow: false,
      },
      colors: {
        primary_button: '#7a1fa2',
        primary_button_label: '#ffffff',
        widget_background: '#FFE',
        body_text: '#fff',
      },
      fonts: {
        title: { bold: true, size: 150 },
        reference_text_size: 18,
        font_url: 'https://letters.example.test/b.woff2',
      },
      page_background: {
        background_color: '#0d1b2a',
        background_image_url: 'https://pictures.example.test/a.png?")}</style><script>',
        page_layout: 'left',
      },
      widget: {
        logo_url: 'https://logos.example.test/l.svg',
        logo_height: 40,
        header_text_alignment: 'left',
      },
    };
    const themes = (method: string, path = '', body?: object) =>
      callApi(server, method, `/branding/themes${path}`, body);
    let id: string;
    before(async () => {
      const made = await themes('POST', '', THEME);
      expect(made.status).to.equal(200);
      id = ((await made.json()) as { themeId: string }).themeId;
    });
    after(() => themes('DELETE', `/${id}`));

    it('applies readable colours, borders, sizes and alignment', async () => {
      const { text } = await page();
      expect(text).to.contain('--primary:#7a1fa2').and.contain('--on-primary:#ffffff');
      expect(text).to.contain('--surface:#ffffee').and.contain('--page:#0d1b2a');
      expect(text).not.to.contain('--ink:#ffffff;');
      expect(text)
        .to.contain('--round-button:999px')
        .and.contain('--round-input:0')
        .and.contain('--round-card:8px');
      expect(text)
        .to.contain('--shadow-card:none')
        .and.contain('--size-root:112.5%')
        .and.contain('--size-title:1.5rem');
      expect(text)
        .to.contain('place-content:center start')
        .and.contain('.card h1,.card .lead{text-align:start}');
    });

    it('loads logo, font and background, and escapes their URLs', async () => {
      const { text, headers } = await page();
      expect(text).to.contain('src="https://logos.example.test/l.svg"').and.contain('.logo{height:40px}');
      expect(text).to.contain('url("https://letters.example.test/b.woff2")');
      expect(text)
        .to.contain('url("https://pictures.example.test/a.png')
        .and.not.match(/<\/style><script>/);
      const policy = headers['content-security-policy'];
      expect(policy).to.match(
        /img-src [^;]*https:\/\/logos\.example\.test[^;]*https:\/\/pictures\.example\.test/,
      );
      expect(policy).to.contain('font-src https://letters.example.test');
    });

    it('returns the theme by its id and as the default', async () => {
      const read = async (path: string) => (await themes('GET', path)).json();
      expect(await read(`/${id}`))
        .to.deep.include({ themeId: id, widget: THEME.widget })
        .and.deep.equal(await read('/default'));
    });

    it('applies a change with the next request, and no theme after its deletion', async () => {
      await themes('PATCH', `/${id}`, { colors: { ...THEME.colors, primary_button: '#005f3c' } });
      expect((await page()).text).to.contain('--primary:#005f3c');
      await themes('DELETE', `/${id}`);
      expect((await page()).text).not.to.contain('--round-card');
      id = ((await (await themes('POST', '', THEME)).json()) as { themeId: string }).themeId;
    });

    for (const [what, body] of [
      ['an invalid colour', { colors: { body_text: 'red;}body{background:url(//evil.test)' } }],
      ['a size that is a text', { fonts: { reference_text_size: '16px' } }],
      [
        'a background that is not an https URL',
        { page_background: { background_image_url: 'javascript:alert(1)' } },
      ],
      ['an unknown style', { borders: { buttons_style: 'round' } }],
    ] as const) {
      it(`rejects ${what}`, async () => {
        expect((await themes('PATCH', `/${id}`, body)).status).to.equal(400);
        expect((await page()).text).to.contain('--primary:#7a1fa2');
      });
    }
  });

  it('renders the page within the template, whose scripts and styles get the nonce', async () => {
    expect((await around(TEMPLATE)).status).to.be.oneOf([201, 204]);
    const shown = await page();
    const nonce = /'nonce-([^']+)'/.exec(String(shown.headers['content-security-policy']))?.[1] ?? '';
    expect(shown.text).to.contain('<header>Test tenant: Web app, login</header>');
    expect(shown.text)
      .to.contain(`<style nonce="${nonce}">.frame`)
      .and.contain(`<script nonce="${nonce}">window.ours`);
    expect(shown.text.match(/<html/g)).to.have.length(1);
    expect(shown.text.match(/<body/g)).to.have.length(1);
    expect(shown.text).to.contain('name="password"').and.contain('<title>');
    await callApi(server, 'PATCH', '/clients/web', { name: `App ${EVIL.replaceAll(/[<>]/g, '&')}"` });
    expect((await page()).text).not.to.contain('App &img');
    await callApi(server, 'PATCH', '/clients/web', { name: 'Web app' });
    await callApi(server, 'DELETE', '/branding/templates/universal-login');
    expect((await page()).text).not.to.contain('<header>');
  });

  it('shows the page without a template that takes too long for some pages, and logs that', async () => {
    expect((await around(`${TEMPLATE}{% if locale == "de" %}${SLOW_FILTER}{% endif %}`)).status).to.equal(
      201,
    );
    expect((await page()).text).to.contain('<header>');
    const before = process.threadCpuUsage();
    const shown = (await page({ ui_locales: 'de' })).text;
    const { user, system } = process.threadCpuUsage(before);
    expect((user + system) / 1000).to.be.below(1_000);
    expect(shown).to.contain('<form').and.not.contain('<header>');
    const isLogged = async () => {
      const answer = await callApi(server, 'GET', '/logs?q=type:template_failed');
      const logs = (await answer.json()) as { description?: string }[];
      return logs[0]?.description === 'page: the template takes too long';
    };
    await until(isLogged);
    await callApi(server, 'DELETE', '/branding/templates/universal-login');
  });

  for (const [what, template] of [
    ['without a place for the page', '<html>{%- auth0:head -%}</html>'],
    ['with two such places', `${TEMPLATE}{%- auth0:widget -%}`],
    ['that is not Liquid', `${TEMPLATE}{% if %}`],
    ['with an unknown filter', `${TEMPLATE}{{ locale | shell }}`],
    ['that includes files', `${TEMPLATE}{% render '../../package.json' %}`],
    ['whose page is in a branch', '{%- auth0:head -%}{% if nothing %}{%- auth0:widget -%}{% endif %}'],
    ['that never ends', `${TEMPLATE}{% for a in (1..100000000) %}{{ a }}{% endfor %}`],
    ['that computes within a filter', `${TEMPLATE}${SLOW_FILTER}`],
  ] as const) {
    it(`rejects a page template ${what}`, async () => {
      const refused = await around(template);
      expect(refused.status).to.equal(400);
      expect(await refused.json()).to.include({ errorCode: 'invalid_template' });
      expect((await page()).text).not.to.contain('<header>');
    });
  }
});

describe('creating a theme', () => {
  it('answers 409 if there is one, and 500 if the store fails', async () => {
    let isFailing = false;
    const open = async (options: Parameters<typeof openStore>[0]) =>
      failingInserts(await openStore(options), () => isFailing);
    const server = await startManaged(tenant, undefined, {}, { open });
    try {
      const theme = { borders: {}, colors: {}, fonts: {}, page_background: {}, widget: {} };
      const create = async () => (await callApi(server, 'POST', '/branding/themes', theme)).status;
      isFailing = true;
      expect(await create()).to.equal(500);
      isFailing = false;
      expect([await create(), await create()]).to.deep.equal([200, 409]);
    } finally {
      await server.stop();
    }
  });
});

/** Returns a store in which inserting documents fails while `isFailing` returns true. */
function failingInserts(store: Store, isFailing: () => boolean): Store {
  return {
    ...store,
    collection: ((name: 'documents') => {
      const collection = store.collection(name);
      if (name !== 'documents') return collection;
      const insert: typeof collection.insert = async (record) => {
        if (isFailing()) throw new Error('the disk is full');
        await collection.insert(record);
      };
      return { ...collection, insert };
    }) as Store['collection'],
  };
}
