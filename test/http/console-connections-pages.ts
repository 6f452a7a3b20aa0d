// States of the console's connection pages.

import { filledFields } from '../../src/features/console/connections/console-connection-options.ts';
import {
  CONNECTIONS_APPLICATIONS_PAGE,
  CONNECTIONS_KINDS_PAGE,
  CONNECTIONS_LIST_PAGE,
  CONNECTIONS_NEW_PAGE,
  CONNECTIONS_TRY_PAGE,
} from '../../src/features/console/connections/console-connections-routes.ts';
import {
  CONNECTIONS_DELETE_PAGE,
  CONNECTIONS_SETTINGS_PAGE,
} from '../../src/features/console/connections/console-connections-settings.ts';
import { kindOf, kindsByGroup } from '../../src/features/console/connections/kinds.ts';
import { CONNECTIONS_SCRIPT_PAGE } from '../../src/features/console/connections/script-page.ts';
import type { ConsoleFrame } from '../../src/features/console/render.ts';
import { type SitePage, sitePages } from './site.ts';

const LONG = 'a-long-name-of-a-connection-'.repeat(4);
const used = [
  { what: 'time' as const, used: 31, of: 20_000 },
  { what: 'memory' as const, used: 16, of: 64 },
];
const printed = [{ level: 'info', text: 'asking the provider '.repeat(9) }];

/** Returns the pages by path. @param model the data that all pages of the console share. */
export function consoleConnectionPages(model: ConsoleFrame): Record<string, SitePage> {
  const connection = {
    id: 'con_1',
    name: 'acme',
    title: 'Acme',
    path: '/console/connections/con_1',
    kind: kindOf('oauth2'),
    lacking: [],
  };
  const head = { ...model, connection, scriptsPath: '/scripts', mayChange: true, section: 'connections' };
  const page = sitePages(head);
  const of = (name: string, more: object = {}) => ({
    path: '/one',
    name,
    title: name,
    lacking: [],
    applications: 2,
    isUsed: true,
    ...more,
  });
  const list = [of('acme'), of(LONG, { lacking: ['client_id'] }), of('unused', { isUsed: false })];
  const fault = { status: 400, key: 'console.json.syntax', line: 3, column: 14 };
  const faults = { attribute_map: fault, client_id: fault };
  const refused = filledFields('oidc', {}, { entered: {}, faults });
  return {
    '/console-connections': page(CONNECTIONS_LIST_PAGE, {
      groups: [{ kind: kindOf('samlp'), connections: list }],
      isEmpty: false,
      q: '',
      mayCreate: true,
    }),
    '/console-connections-empty': page(CONNECTIONS_LIST_PAGE, {
      groups: [],
      isEmpty: true,
      q: '',
      mayCreate: true,
    }),
    '/console-connections-kinds': page(CONNECTIONS_KINDS_PAGE, { groups: kindsByGroup() }),
    '/console-connections-new': page(CONNECTIONS_NEW_PAGE, {
      kind: kindOf('oidc'),
      action: '/new',
      values: { name: '', display_name: '' },
      faults: {},
      fields: refused,
      alert: 'Some values cannot be taken.',
    }),
    '/console-connections-settings': page(CONNECTIONS_SETTINGS_PAGE, {
      tab: 'settings',
      mayDelete: true,
      faults: {},
      displayName: 'Acme',
      connection: { ...connection, title: LONG, lacking: ['tokenURL'] },
      addresses: [{ text: 'callback', value: `https://login.example.com/${'a'.repeat(80)}` }],
      check: { fault: 'The provider did not answer in time.' },
      fields: filledFields('oauth2', { client_id: 'them', client_secret: 'set' }),
    }),
    '/console-connections-viewed': page(CONNECTIONS_SETTINGS_PAGE, {
      tab: 'settings',
      mayChange: false,
      mayDelete: false,
      faults: {},
      displayName: '',
      addresses: [],
      fields: filledFields('auth0', {}),
    }),
    '/console-connections-delete': page(CONNECTIONS_DELETE_PAGE, {
      tab: 'settings',
      applications: 1,
      users: 12,
      isFresh: false,
    }),
    '/console-connections-applications': page(CONNECTIONS_APPLICATIONS_PAGE, {
      tab: 'applications',
      number: 1,
      applications: [
        { name: 'Shop', client_id: 'shop', isEnabled: true },
        { name: LONG, client_id: LONG, isEnabled: false },
      ],
      nextUrl: '/next',
    }),
    '/console-connections-script': page(CONNECTIONS_SCRIPT_PAGE, {
      tab: 'scripts',
      scripts: [{ name: 'fetchUserProfile', path: '/s', isCurrent: true, isSet: true }],
      script: 'fetchUserProfile',
      action: '/s',
      changes: false,
      source: 'function fetchUserProfile(accessToken, context, callback) {}',
      parameters: [{ name: 'accessToken', value: '"token"' }],
      run: { failure: { kind: 'script', name: 'Error', message: 'no' }, printed, used },
    }),
    '/console-connections-try': page(CONNECTIONS_TRY_PAGE, {
      tab: 'try',
      by: 'redirect',
      action: '/try',
      isRight: false,
      steps: [
        {
          kind: 'redirect',
          method: 'GET',
          address: 'https://idp.example.com/authorize',
          values: [['state', '•••']],
        },
        { kind: 'answer', values: [['code', '•••']] },
        {
          kind: 'request',
          method: 'POST',
          address: 'https://idp.example.com/token',
          status: 200,
          ms: 12,
          text: '{}',
        },
        {
          kind: 'request',
          method: 'GET',
          address: 'https://idp.example.com/me',
          fault: 'timeout',
          ms: 12,
          text: '',
        },
        {
          kind: 'script',
          name: 'fetchUserProfile',
          printed,
          used,
          failure: { kind: 'cpu', message: 'too long' },
        },
        { kind: 'profile', id: '42', text: '{\n  "name": "Ada"\n}' },
        { kind: 'error', error: 'access_denied', text: 'The profile has no user_id.' },
      ],
    }),
    '/console-connections-try-form': page(CONNECTIONS_TRY_PAGE, { tab: 'try', by: 'form' }),
  };
}
