// States of the console's branding pages. axe cannot check their frames, in which scripts are forbidden; the framed
// pages are checked on their own.

import { BRANDING_TEMPLATE_PAGE } from '../../src/features/console/branding/console-branding-routes.ts';
import { brandFields, themeGroups } from '../../src/features/console/branding/look.ts';
import { BRANDING_LOOK_PAGE } from '../../src/features/console/branding/look-page.ts';
import {
  BRANDING_MESSAGE_PAGE,
  BRANDING_MESSAGES_PAGE,
} from '../../src/features/console/branding/message-pages.ts';
import {
  BRANDING_PROMPTS_PAGE,
  BRANDING_TEXTS_PAGE,
} from '../../src/features/console/branding/text-pages.ts';
import type { ConsoleFrame } from '../../src/features/console/render.ts';
import { type SitePage, sitePages } from './site.ts';

/** Returns the pages by path. @param model the data that all pages of the console share. */
export function consoleBrandingPages(model: ConsoleFrame): Record<string, SitePage> {
  const path = '/console/branding';
  const languages = [
    { tag: 'en', name: 'English', isEnabled: true, path: '/en' },
    { tag: 'ar', name: 'العربية', isEnabled: false, path: '/ar' },
  ];
  const head = {
    ...model,
    path,
    section: 'branding',
    languages,
    language: 'ar',
    mayChange: true,
    mayDelete: true,
  };
  const page = sitePages(head);
  const message = {
    name: 'verify_email',
    kind: 'verify_email',
    path: '/message',
    isOwn: true,
    isOff: false,
  } as const;
  const sms = {
    name: 'con_1',
    kind: 'passwordless_sms',
    connection: 'texts',
    path: '/sms',
    isOwn: false,
    isOff: true,
  } as const;
  return {
    '/console-branding': page(BRANDING_LOOK_PAGE, {
      tab: 'look',
      brand: brandFields({
        colors: { primary: '#2b5b52' },
        logo_url: `https://example.com/${'logo'.repeat(30)}`,
      }),
      theme: themeGroups({ borders: { show_widget_shadow: false } }),
      hasTheme: true,
      pages: ['login', 'error'],
      frameUrl: '',
      shown: { page: 'login', language: 'en', scheme: 'dark', width: 'phone' },
    }),
    '/console-branding-viewed': page(BRANDING_LOOK_PAGE, {
      tab: 'look',
      brand: brandFields({}),
      theme: themeGroups({}),
      pages: ['login'],
      hasTheme: false,
      frameUrl: '',
      shown: { page: 'login', language: 'en', scheme: 'light', width: 'wide' },
      mayChange: false,
      mayDelete: false,
    }),
    '/console-branding-template': page(BRANDING_TEMPLATE_PAGE, {
      tab: 'template',
      source: '<html>',
      isKept: true,
    }),
    '/console-branding-messages': page(BRANDING_MESSAGES_PAGE, { tab: 'messages', messages: [message, sms] }),
    '/console-branding-message': page(BRANDING_MESSAGE_PAGE, {
      tab: 'messages',
      message,
      written: { from: '', subject: 'Hello', body: '<p>{{ url }}</p>' },
      isSms: false,
      faults: { body: { status: 400, message: 'tag "{% if %" not closed, line:1, col:1' } },
      frameUrl: '',
      from: '"Example" <no-reply@example.com>',
      subject: 'A subject that is long '.repeat(6),
      sent: 'ada.lovelace@example.test',
    }),
    '/console-branding-sms': page(BRANDING_MESSAGE_PAGE, {
      tab: 'messages',
      message: sms,
      isSms: true,
      written: { from: '', subject: '', body: '{{ code }}' },
      faults: {},
      frameUrl: '',
    }),
    '/console-branding-prompts': page(BRANDING_PROMPTS_PAGE, {
      tab: 'texts',
      prompts: [
        { name: 'login', path: '/login', own: 2, of: 20 },
        { name: 'reset-password', path: '/reset', own: 0, of: 9 },
      ],
    }),
    '/console-branding-texts': page(BRANDING_TEXTS_PAGE, {
      tab: 'texts',
      prompt: 'login',
      direction: 'rtl',
      action: '/texts',
      screens: [
        {
          name: 'login',
          texts: [
            {
              id: 'title',
              key: 'title',
              field: 'login.title',
              usual: 'تسجيل الدخول إلى ${clientName}',
              value: '',
            },
            {
              id: 'buttonText',
              key: 'buttonText',
              field: 'login.buttonText',
              usual: 'متابعة',
              value: 'الدخول',
            },
          ],
        },
      ],
    }),
  };
}
