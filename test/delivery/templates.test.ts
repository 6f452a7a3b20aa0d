// The content of messages: ours in every kind and language, and the tenant's own templates, which can do no harm.
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import type { EmailKind, MessageKind, Notice } from '../../src/capabilities/delivery/delivery-messages.ts';
import { createTemplates } from '../../src/capabilities/delivery/delivery-templates.ts';
import type { OutgoingEmail, OutgoingSms } from '../../src/capabilities/delivery/transport.ts';
import { createTenantLiquid, reportingLiquid } from '../../src/capabilities/liquid/liquid.ts';
import { readLocales } from '../../src/capabilities/pages/locales.ts';
import type { Client, Connection } from '../../src/records/collections.ts';
import { type TenantRecord, tenantFileSchema } from '../../src/records/tenant/tenant.ts';
import type { User } from '../../src/users/user.ts';
import { SLOW_FILTER } from '../liquid/support.ts';
import { stopwatch } from '../support/timing.ts';

const VIEWS = fileURLToPath(new URL('../../views', import.meta.url));
const locales = readLocales(fileURLToPath(new URL('../../views/locales', import.meta.url)));
const KINDS: MessageKind[] = [
  'verify_email',
  'reset_email',
  'welcome_email',
  'user_invitation',
  'blocked_account',
  'mfa_oob_code',
  'password_changed',
  'passwordless_email',
  'passwordless_sms',
  'mfa_sms',
];
const LINK = 'https://login.example.test/u/reset-password?ticket=abc&x=1';

const user = {
  id: 'auth0|1',
  email: 'ada@example.test',
  email_verified: false,
  name: 'Ada <b>Lovelace</b>',
  user_metadata: { plan: 'gold' },
  app_metadata: { secret: 'for applications alone' },
} as unknown as User;
const application = {
  client_id: 'books',
  name: 'Harbour Books',
  callbacks: ['https://books.example.test/cb'],
} as unknown as Client;
const connection = (options: object = {}) =>
  ({ name: 'email', strategy: 'email', options }) as unknown as Connection;
const organization = { id: 'org_1', name: 'acme', display_name: 'Acme' };

describe('the templates of messages', () => {
  let logged: object[];
  const liquid = createTenantLiquid();
  after(() => liquid.close());
  beforeEach(() => {
    logged = [];
  });
  const templatesOf = (file: object = {}) => {
    const tenant = tenantFileSchema.parse(file) as unknown as TenantRecord;
    return createTemplates({
      directory: VIEWS,
      locales,
      baseUrl: 'https://login.example.test',
      settings: () => tenant,
      phoneTemplates: () => new Map(),
      mailFrom: () => 'Gatehouse <login@example.test>',
      liquid: reportingLiquid(liquid, (failed) => void logged.push(failed)),
    });
  };
  const email = async (kind: EmailKind, file: object = {}, notice: Partial<Notice> = {}) =>
    (await templatesOf(file).render(kind, {
      to: 'ada@example.test',
      application,
      connection: connection(),
      user,
      ...notice,
    })) as OutgoingEmail;
  const own = (fields: object) => ({ emailTemplates: [{ template: 'reset_email', ...fields }] });

  for (const locale of ['en', 'de', 'ar']) {
    for (const kind of KINDS) {
      it(`of ours are complete for ${kind} in ${locale}`, async () => {
        for (const carried of [{ code: '123456' }, { url: LINK }]) {
          const notice = {
            to: 'ada@example.test',
            application,
            connection: connection(),
            user,
            languages: [locale],
            ...carried,
          };
          const message = await templatesOf().render(kind, notice);
          expect(message.text).not.to.match(/\{\w*\}|undefined|\[object/);
          if (message.channel === 'sms') continue;
          expect(message.html).not.to.match(/\{\w*\}|undefined|\[object|\{\{/);
          expect(message.html).to.contain(`lang="${locale}" dir="${locale === 'ar' ? 'rtl' : 'ltr'}"`);
          expect(message.subject).not.to.equal('');
          expect(message.text).to.contain(Object.values(carried)[0]);
          expect(message.html).to.contain(Object.values(carried)[0]?.replaceAll('&', '&amp;'));
        }
      });
    }
  }

  it('load nothing from other hosts, and run nothing', async () => {
    const { html } = await email('reset_email', {}, { url: LINK });
    expect(html).not.to.match(/<script|<link|@import|url\(|<img|javascript:/i);
  });

  it('carry code and link for the development inbox', async () => {
    expect(await email('reset_email', {}, { url: LINK }))
      .to.include({ link: LINK })
      .and.not.have.property('code');
    expect(await email('mfa_oob_code', {}, { code: '123456' }))
      .to.include({ code: '123456' })
      .and.not.have.property('link');
  });

  it('show names as text', async () => {
    const nasty = '"><script>alert(1)</script>{{ 7 | times: 7 }}';
    const { html } = await email(
      'reset_email',
      { tenant: { friendly_name: nasty } },
      { application: { ...application, name: nasty } as Client },
    );
    expect(html).not.to.contain('<script');
    expect(html).not.to.contain('49');
  });

  it('say how long links and codes are valid', async () => {
    const say = async (urlLifetimeInSeconds: number) =>
      (await email('reset_email', own({ urlLifetimeInSeconds }), { url: LINK })).text;
    expect(await say(600)).to.contain('valid for 10 minutes');
    expect(await say(60)).to.contain('valid for 1 minute and works once');
    expect(await say(7200)).to.contain('valid for 2 hours');
    expect(await say(432000), 'the link of a reset at most').to.contain('valid for 24 hours');
    expect((await email('verify_email', {}, { url: LINK })).text).to.contain('valid for 5 days');
    const { text } = await email(
      'passwordless_email',
      {},
      { code: '1', connection: connection({ totp: { time_step: 300 } }) },
    );
    expect(text).to.contain('valid for 5 minutes');
  });

  it('for SMS let phones fill in the code at our host', async () => {
    const message = await templatesOf().render('passwordless_sms', {
      to: '+16505551234',
      application,
      code: '123456',
    });
    expect(message.text).to.match(
      /^123456 is your code for Harbour Books\..*\n\n@login\.example\.test #123456$/,
    );
  });

  describe('of the tenant', () => {
    it('replace ours: sender, subject and body', async () => {
      const file = own({
        from: '{{ application.name }} <hello@example.test>',
        subject: 'For {{ user.name }}',
        body: '<a href="{{ url }}">{{ user.name }} of {{ organization.display_name }} ({{ user.user_metadata.plan }})</a>',
      });
      const message = await email('reset_email', file, { url: LINK, organization: organization as never });
      expect(message.from).to.equal('Harbour Books <hello@example.test>');
      expect(message.subject).to.equal('For Ada <b>Lovelace</b>');
      expect(message.html).to.equal(
        '<a href="https://login.example.test/u/reset-password?ticket=abc&amp;x=1">Ada &lt;b&gt;Lovelace&lt;/b&gt; of Acme (gold)</a>',
      );
      expect(message.text).to.contain(LINK);
      expect(logged).to.deep.equal([]);
    });

    const variables: [string, string][] = [
      ['application.name', 'Harbour Books'],
      ['application.clientID', 'books'],
      ['application.callback_domain', 'https://books.example.test'],
      ['connection.name', 'email'],
      ['user.email', 'ada@example.test'],
      ['user.user_metadata.plan', 'gold'],
      ['user.user_id', 'auth0|1'],
      ['code', '123456'],
      ['tenant', 'Gatehouse'],
      ['friendly_name', 'Gatehouse'],
      ['support_email', 'help@example.test'],
      ['organization.id', 'org_1'],
      ['organization.name', 'acme'],
      ['organization.display_name', 'Acme'],
      ['request_language', 'de, en;q=0.5'],
      ['locale', 'de'],
      ['user.app_metadata.secret', ''],
      ['nothing.at.all', ''],
      ['application.constructor.name', ''],
      ['user.__proto__', ''],
    ];
    for (const [name, value] of variables) {
      it(`have ${name} as ${JSON.stringify(value)}`, async () => {
        const file = { ...own({ body: `[{{ ${name} }}]` }), tenant: { support_email: 'help@example.test' } };
        const notice = {
          code: '123456',
          organization: organization as never,
          languages: ['de, en;q=0.5', 'en'],
        };
        expect((await email('reset_email', file, notice)).html).to.equal(`[${value}]`);
      });
    }

    it('escape once, even where the template escapes itself', async () => {
      const { html } = await email('reset_email', own({ body: '{{ user.name | escape }}|{{ user.name }}' }));
      const escaped = 'Ada &lt;b&gt;Lovelace&lt;/b&gt;';
      expect(html).to.equal(`${escaped}|${escaped}`);
    });

    it('cannot inject a header', async () => {
      const file = own({
        from: 'a@b.test{{ user.user_metadata.evil }}',
        subject: 'x{{ user.user_metadata.evil }}',
      });
      const evil = {
        ...user,
        user_metadata: { evil: '\r\nBcc: eve@example.test\u2028x' },
      } as unknown as User;
      const message = await email('reset_email', file, { user: evil });
      expect(`${message.from}${message.subject}`).not.to.match(/[\r\n\u2028]/);
      expect(message.subject.length).to.be.at.most(300);
    });

    for (const [what, body] of [
      ['is no Liquid', '{% if %}'],
      ['has an unknown tag', '{% nothing %}'],
      ['has an unknown filter', '{{ code | nothing }}{% endnope %}'],
      ['reads a file', '{% include "message" %}'],
      ['renders a file', '{% render "../../package.json" %}'],
      ['has a layout', '{% layout "message" %}'],
      ['never ends', '{% for i in (1..100000000) %}{% for j in (1..100000000) %}x{% endfor %}{% endfor %}'],
      [
        'fills the memory',
        '{% assign x = "xxxxxxxxxx" %}{% for i in (1..1000) %}{% assign x = x | append: x %}{% endfor %}{{ x }}',
      ],
      ['is too long', 'x'.repeat(300_000)],
      ['computes within a filter', SLOW_FILTER],
    ] as const) {
      it(`are replaced by ours, which is logged once, when one ${what}`, async () => {
        const templates = templatesOf(own({ body, subject: 'Their subject' }));
        const time = stopwatch();
        for (let i = 0; i < 3; i++) {
          const message = (await templates.render('reset_email', {
            to: 'a@b.test',
            application,
            url: LINK,
          })) as OutgoingEmail;
          expect(message.html).to.contain('Set a new password');
          expect(message.subject).to.equal('Their subject');
        }
        expect(time()).to.be.below(5_000);
        expect(logged).to.have.length(1);
      });
    }

    it('of a connection are used for its e-mail', async () => {
      const options = {
        email: {
          from: 'codes@example.test',
          subject: 'Code {{ code }}',
          body: '<b>@@password@@</b>',
          syntax: 'liquid',
        },
      };
      const message = await email(
        'passwordless_email',
        {},
        { code: '123456', connection: connection(options) },
      );
      expect(message).to.include({
        from: 'codes@example.test',
        subject: 'Code 123456',
        html: '<b>123456</b>',
      });
    });

    it('of a connection are used for its SMS', async () => {
      const options = { from: '+15005550006', template: 'Code: @@password@@ <{{ application.name }}>' };
      const message = (await templatesOf().render('passwordless_sms', {
        to: '+16505551234',
        application,
        code: '123456',
        connection: connection(options),
      })) as OutgoingSms;
      expect(message).to.include({ from: '+15005550006', text: 'Code: 123456 <Harbour Books>' });
    });

    it('may be switched off; ours are on, except the welcome mail', () => {
      expect(templatesOf(own({ enabled: false })).settings('reset_email').enabled).to.equal(false);
      expect(templatesOf().settings('reset_email')).to.deep.equal({
        enabled: true,
        urlLifetimeInSeconds: 14400,
        includeEmailInRedirect: true,
      });
      expect(templatesOf().settings('welcome_email').enabled).to.equal(false);
      const result = {
        resultUrl: 'https://app.example.test/',
        urlLifetimeInSeconds: 60,
        includeEmailInRedirect: false,
      };
      expect(templatesOf(own(result)).settings('reset_email')).to.deep.equal({ enabled: true, ...result });
    });
  });

  describe('choose the language', () => {
    it("of the recipient if the tenant has it, otherwise the tenant's first", async () => {
      const subject = async (languages: string[] | undefined, enabled = ['en', 'de']) =>
        (await email('reset_email', { tenant: { enabled_locales: enabled } }, { languages })).subject;
      expect(await subject(['de'])).to.equal('Neues Passwort festlegen');
      expect(await subject(['ar'])).to.equal('Set a new password');
      expect(await subject(['fr', 'ar;q=0.9, de-AT;q=0.8'])).to.equal('Neues Passwort festlegen');
      expect(await subject(undefined, ['de', 'en'])).to.equal('Neues Passwort festlegen');
    });

    it('of the user before that of the request, which may be of somebody else', async () => {
      const subject = async (notice: Partial<Notice>) =>
        (await email('reset_email', { tenant: { enabled_locales: ['en', 'de'] } }, notice)).subject;
      const of = (locale: string) => ({ ...user, locale }) as User;
      expect(await subject({ user: of('de_DE'), languages: ['en'] })).to.equal('Neues Passwort festlegen');
      expect(await subject({ user: of('fr'), languages: ['de'] })).to.equal('Neues Passwort festlegen');
      expect(await subject({ user: of('de'), locale: 'en' })).to.equal('Set a new password');
    });

    it('and mark the body with it, whose values have directions of their own', async () => {
      const file = { tenant: { enabled_locales: ['ar'], support_email: 'help@example.test' } };
      const { html } = await email('reset_email', file);
      expect(html).to.match(/<html lang="ar" dir="rtl">/);
      expect(html).to.match(/<body class="page" lang="ar" dir="rtl"/);
      expect(html).to.contain('<a href="mailto:help@example.test" dir="ltr"');
    });

    it('and break lines as it does, with room for its script', async () => {
      const style = async (tag: string) => {
        const { html } = await email('reset_email', { tenant: { enabled_locales: [tag] } });
        return /<div class="page" [^>]*;(line-height:.*?;word-break:.*?);/.exec(html)?.[1];
      };
      expect(await style('ko')).to.equal('line-height:1.55;word-break:keep-all');
      expect(await style('ur')).to.equal('line-height:1.9;word-break:normal');
      expect(await style('pt-BR')).to.equal('line-height:1.55;word-break:normal');
    });
  });
});
