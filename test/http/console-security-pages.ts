// States of the console's section "Security".

import type { ConsoleFrame } from '../../src/features/console/render.ts';
import { SECURITY_BLOCKED_PAGE } from '../../src/features/console/security/blocked.ts';
import { SECURITY_KEYS_PAGE } from '../../src/features/console/security/console-security-keys.ts';
import { SECURITY_FACTORS_PAGE } from '../../src/features/console/security/console-security-routes.ts';
import {
  SECURITY_SETTINGS_PAGE,
  SETTINGS_FORMS,
  shownValues,
} from '../../src/features/console/security/settings-pages.ts';
import { sitePage } from './site.ts';

const tabs = ['factors', 'attacks', 'blocked', 'keys', 'sessions', 'tenant'].map((part) => ({
  path: `/console/security/${part}`,
  text: `console.security.${part}`,
  isCurrent: part === 'attacks',
}));
const then = { iso: '2026-11-22T12:00:00.000Z', text: 'Nov 22, 2026, 12:00 PM UTC' };
const HELPED = ['allowlist', 'friendly_name', 'log_retention_days', 'allowed_logout_urls'];

/** Returns the pages by path. @param model the data that all pages of the console share. */
export const consoleSecurityPages = (model: ConsoleFrame) => ({
  '/console-security': sitePage(
    SECURITY_SETTINGS_PAGE,
    {
      ...model,
      isFresh: false,
      tabs,
      part: 'attacks',
      alert: 'Payload validation error: max_attempts is too small.',
      forms: SETTINGS_FORMS.map((form) => ({
        name: form.name,
        path: `/console/security/${form.part}/${form.name}`,
        text: `console.security.${form.name}`,
        mayChange: form.part !== 'tenant',
        fields: form.fields.map((field) => ({
          ...field,
          id: `${form.name}-${field.name}`,
          text: `console.security.${form.name}.${field.name}`,
          ...(HELPED.includes(field.name) && { help: `console.security.${form.name}.${field.name}.help` }),
          value: shownValues(form, { enabled: true, max_attempts: 10 })[field.name] ?? '',
        })),
      })),
    },
    { status: 400 },
  ),
  '/console-factors': sitePage(SECURITY_FACTORS_PAGE, {
    ...model,
    tabs,
    path: '/console/security/factors',
    mayChange: true,
    factors: [
      { name: 'otp', enabled: true, text: 'console.security.factor.otp' },
      { name: 'sms', enabled: false, text: 'console.security.factor.sms' },
    ],
    policies: ['never', 'all-applications', 'confidence-score'].map((name) => ({
      name,
      text: `console.security.policy.${name}`,
      isCurrent: name === 'never',
    })),
    isOpen: true,
  }),
  '/console-keys': sitePage(SECURITY_KEYS_PAGE, {
    ...model,
    isFresh: false,
    tabs,
    path: '/console/security/keys',
    mayChange: true,
    algs: [
      {
        alg: 'RS256',
        keys: [
          {
            kid: 'mSgC-3bSvXLiuJHnV8LhQ-of-forty-three-signs-x',
            alg: 'RS256',
            thumbprint: 'print',
            state: 'current',
            since: then,
          },
          { kid: 'next', alg: 'RS256', thumbprint: 'print', state: 'next' },
          { kid: 'before', alg: 'RS256', thumbprint: 'print', state: 'previous' },
        ],
      },
    ],
  }),
  '/console-blocked': sitePage(SECURITY_BLOCKED_PAGE, {
    ...model,
    tabs,
    path: '/console/security/blocked',
    asked: '<b>',
    mayUnblockAccounts: true,
    mayUnblockAddresses: true,
    accounts: [
      {
        identifier: 'a-very-long-name-that-nobody-can-break@example.test',
        from: ['2001:db8:85a3::8a2e:370:7334'],
        connections: ['users', 'staff'],
        since: then,
      },
    ],
    addresses: [{ ip: '203.0.113.9', since: then }],
  }),
  '/console-blocked-nobody': sitePage(SECURITY_BLOCKED_PAGE, {
    ...model,
    tabs,
    path: '/console/security/blocked',
    asked: '',
    mayUnblockAccounts: false,
    mayUnblockAddresses: false,
    accounts: [],
    addresses: [],
  }),
});
