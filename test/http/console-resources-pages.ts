// States of the console's pages of resources and applications.

import { z } from 'zod';
import {
  APPLICATIONS_APIS_PAGE,
  APPLICATIONS_CONNECTIONS_PAGE,
  APPLICATIONS_LIST_PAGE,
  APPLICATIONS_NEW_PAGE,
  APPLICATIONS_QUICKSTART_PAGE,
} from '../../src/features/console/applications/console-applications-routes.ts';
import { APPLICATIONS_TRY_PAGE } from '../../src/features/console/applications/try-page.ts';
import type { ConsoleFrame } from '../../src/features/console/render.ts';
import { fieldsOf } from '../../src/features/console/resources/console-resource-fields.ts';
import {
  RESOURCES_INDEX_PAGE,
  RESOURCES_RECORD_PAGE,
} from '../../src/features/console/resources/console-resources-routes.ts';
import {
  RESOURCES_FORM_PAGE,
  RESOURCES_REVIEW_PAGE,
} from '../../src/features/console/resources/form-page.ts';
import { RESOURCES_LIST_PAGE } from '../../src/features/console/resources/list-page.ts';
import { RESOURCES_REMOVE_PAGE } from '../../src/features/console/resources/remove-page.ts';
import { shownMembers } from '../../src/features/console/resources/shown.ts';
import { RESOURCES_ANSWER_PAGE } from '../../src/features/console/resources/submit-form.ts';
import { filledFields } from '../../src/features/console/resources/values.ts';
import { type SitePage, sitePages } from './site.ts';

const crumbs = [{ href: '/console/resources/clients', text: 'Clients' }];

const fields = fieldsOf(
  z.strictObject({
    name: z.string().max(100).describe('What users know it by.'),
    secret: z.string().optional(),
    lifetime: z.number().int().min(60).max(3600).optional(),
    is_on: z.boolean().optional(),
    kind: z.enum(['spa', 'native']).optional(),
    ways: z.array(z.enum(['email', 'phone'])).optional(),
    addresses: z.array(z.string()).optional(),
    metadata: z.record(z.string(), z.unknown()).optional(),
    inner: z.strictObject({ length: z.number(), deeper: z.strictObject({ text: z.string() }) }).optional(),
  }),
);
const record = {
  name: 'Harbour Books',
  is_on: true,
  kind: 'spa',
  ways: ['email'],
  addresses: ['https://a.example.test', 'https://b.example.test'],
  metadata: { shelf: 'A7' },
  inner: { length: 3, deeper: { text: 'x' } },
  created_at: '2026-11-22T12:00:00.000Z',
  nothing: '',
};
const faults = {
  name: 'Invalid input',
  lifetime: 'Too big',
  'inner.length': 'Expected type number',
  metadata: 'This is not valid JSON.',
};

const form = {
  isHarmless: false,
  heading: 'Update a client',
  group: 'clients',
  label: 'Harbour Books',
  crumbs,
  at: '/after',
  isChange: true,
  hasJson: true,
  isJson: false,
  seen: 'digest',
  general: [],
  fields: filledFields(fields, record),
  cancel: '/console/resources/clients/1',
};

const application = {
  client_id: 'harbour-books',
  address: 'harbour-books',
  name: 'Harbour Books',
  kind: 'spa' as const,
  callbacks: ['https://books.example.test/callback'],
  allowed_logout_urls: [],
  wildcards: ['https://*.books.example.test/callback'],
  grant_types: ['authorization_code'],
  is_first_party: true,
};
const tabs = ['quickstart', 'connections', 'apis', 'try'].map((name) => ({
  href: `/console/applications/harbour-books/${name}`,
  text: `console.applications.tab.${name}`,
  isCurrent: name === 'quickstart',
}));
const settings = '/console/resources/clients/harbour-books';

/** Returns the pages by path. @param shared the data that all pages of the console share. */
export function resourcesStates(shared: ConsoleFrame): Record<string, SitePage> {
  const page = sitePages(shared);
  const cells = shownMembers({ app_type: 'spa', is_first_party: true });
  return {
    '/console-resources': page(RESOURCES_INDEX_PAGE, {
      groups: [
        {
          title: 'Clients',
          pages: [{ href: '/console/resources/clients', text: 'Clients' }],
          actions: [{ href: '/console/create/tickets', text: 'Create a link' }],
          named: [{ title: 'Email templates', at: '/email-templates/:name', parameters: ['name'] }],
        },
      ],
    }),
    '/console-list': page(RESOURCES_LIST_PAGE, {
      heading: 'Clients',
      crumbs: [],
      at: '/console/resources/clients',
      filters: filledFields(fields.slice(4, 5), {}),
      hasFilter: false,
      isMissing: false,
      isLost: false,
      isPartial: false,
      count: 2,
      isSearchable: true,
      text: '',
      operations: [{ href: '/console/create/clients', text: 'Create a client', operation: 'create' }],
      isSortable: true,
      columns: [
        { name: 'app_type', href: '?by=app_type', direction: 'ascending' },
        { name: 'is_first_party', href: '?by=is_first_party', direction: 'none' },
      ],
      rows: [
        { label: 'Harbour Books', id: 'harbour-books', href: settings, operations: [], cells },
        {
          label: 'Other',
          id: '',
          operations: [{ href: '/console/remove/x', text: 'Delete a client' }],
          cells,
        },
      ],
      first: 1,
      last: 2,
      total: 60,
      next: '?page=2',
    }),
    '/console-list-none': page(RESOURCES_LIST_PAGE, {
      heading: 'Clients',
      crumbs,
      at: '/console/resources/clients',
      filters: [],
      isSearchable: true,
      hasFilter: true,
      isMissing: false,
      isLost: false,
      isPartial: false,
      isSortable: false,
      count: 0,
      text: 'x',
      operations: [],
      rows: [],
      columns: [],
      fault: 'Query validation error.',
    }),
    '/console-list-lost': page(RESOURCES_LIST_PAGE, {
      heading: 'Clients',
      crumbs,
      at: '/console/resources/clients',
      filters: [],
      isSearchable: true,
      hasFilter: false,
      isMissing: false,
      isPartial: false,
      isSortable: false,
      count: 0,
      text: '',
      operations: [],
      rows: [],
      columns: [],
      isLost: true,
    }),
    '/console-record': page(RESOURCES_RECORD_PAGE, {
      isRecord: true,
      isAbsent: false,
      isRevealed: false,
      heading: 'Harbour Books',
      crumbs,
      members: shownMembers(record),
      operations: [
        { href: '/change', text: 'Update a client', operation: 'change' },
        { href: '/remove', text: 'Delete a client', operation: 'remove' },
      ],
      json: '/change?as=json',
      reveal: '/after',
      below: {
        pages: [{ href: '/below', text: 'Credentials' }],
        actions: [{ href: '/rotate', text: 'Rotate' }],
      },
    }),
    '/console-record-none': page(RESOURCES_RECORD_PAGE, {
      heading: 'Emails provider',
      crumbs: [],
      members: [],
      isRecord: true,
      isAbsent: true,
      isRevealed: false,
      operations: [{ href: '/create', text: 'Configure the e-mail provider', operation: 'create' }],
      below: { pages: [], actions: [] },
    }),
    '/console-form': page(RESOURCES_FORM_PAGE, form),
    '/console-form-wrong': page(RESOURCES_FORM_PAGE, {
      ...form,
      general: ['Additional properties not allowed: id'],
      fields: filledFields(fields, record, { faults }),
    }),
    '/console-review': page(RESOURCES_REVIEW_PAGE, {
      ...form,
      changes: [
        { path: 'name', before: 'Harbour', after: 'Harbour Books' },
        { path: 'metadata.shelf', before: undefined, after: 'A7' },
      ],
      body: '{}',
    }),
    '/console-remove': page(RESOURCES_REMOVE_PAGE, {
      ...form,
      heading: 'Delete a client',
      told: 'console.resources.goes.clients',
      hanging: [{ href: '/console/resources/client-grants', text: 'Client grants', count: 2 }],
      mayBeForced: true,
      isFresh: false,
    }),
    '/console-answer': page(RESOURCES_ANSWER_PAGE, {
      heading: 'Create a token',
      crumbs,
      members: shownMembers({ token: 'a-new-token', scopes: ['get:users'] }, true),
      after: '/console/resources/clients',
    }),
    '/console-applications': page(APPLICATIONS_LIST_PAGE, {
      text: '',
      mayCreate: true,
      applications: [{ ...application, href: '/console/applications/harbour-books', is_first_party: false }],
      first: 1,
      last: 1,
      total: 1,
    }),
    '/console-application-new': page(APPLICATIONS_NEW_PAGE, {
      kinds: ['spa', 'regular_web', 'native', 'non_interactive'],
      values: { name: 'My application', callback: 'http://localhost:3000' },
      faults: {},
    }),
    '/console-application': page(APPLICATIONS_QUICKSTART_PAGE, {
      application,
      tabs,
      settings,
      domain: 'login.example.test',
      issuer: 'https://login.example.test/',
      hasCallback: true,
      hasSecret: true,
      snippets: [
        {
          title: 'openid-client',
          package: 'openid-client',
          install: 'npm install openid-client',
          language: 'js',
          code: "import * as client from 'openid-client';\n",
        },
        { title: 'curl', language: 'sh', code: 'curl https://login.example.test/\n' },
      ],
    }),
    '/console-application-connections': page(APPLICATIONS_CONNECTIONS_PAGE, {
      application,
      tabs,
      settings,
      maySwitch: true,
      connections: [
        { id: 'con_1', name: 'Users', strategy: 'auth0', isOn: true },
        { id: 'con_2', name: 'Acme', strategy: 'samlp', isOn: false },
      ],
    }),
    '/console-application-try': page(APPLICATIONS_TRY_PAGE, {
      application,
      tabs,
      settings,
      by: 'login',
      apis: [{ identifier: 'https://api.example.test/', name: 'Things' }],
      connections: ['users'],
    }),
    '/console-application-tried': page(APPLICATIONS_TRY_PAGE, {
      application,
      tabs,
      settings,
      by: 'login',
      apis: [],
      connections: [],
      tried: {
        idToken: { header: '{ "alg": "RS256" }', claims: '{ "sub": "auth0|1" }' },
        accessToken: {},
        answer: '{ "expires_in": 86400 }',
        subject: 'ada@example.test',
      },
    }),
    '/console-application-try-failed': page(APPLICATIONS_TRY_PAGE, {
      application,
      tabs,
      settings,
      apis: [],
      connections: [],
      tried: { error: 'access_denied', description: 'The user is blocked.' },
    }),
    '/console-application-try-go': page(APPLICATIONS_TRY_PAGE, {
      application,
      tabs,
      settings,
      apis: [],
      connections: [],
      goUrl: '/authorize',
    }),
    '/console-application-apis': page(APPLICATIONS_APIS_PAGE, {
      application,
      tabs,
      settings,
      maySwitch: true,
      hasGrantType: false,
      subject: 'user',
      apis: [
        {
          identifier: 'https://api.example.test/',
          name: 'Things',
          all: 3,
          given: 2,
          isOn: true,
          otherSubject: 'client',
          grant: '/grant',
        },
        { identifier: 'https://other.example.test/', name: 'Others', all: 0, given: 0, isOn: false },
      ],
    }),
  };
}
