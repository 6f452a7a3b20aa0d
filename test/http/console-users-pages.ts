// States of the console's pages of users and actions.

import type { FormatTime } from '../../src/capabilities/pages/times.ts';
import { ACTIONS_CODE_PAGE } from '../../src/features/console/actions/code.ts';
import {
  ACTIONS_DELETE_PAGE,
  ACTIONS_DEPLOY_PAGE,
  ACTIONS_LIST_PAGE,
  ACTIONS_NEW_PAGE,
  ACTIONS_VERSIONS_PAGE,
  type ActionsDiff,
} from '../../src/features/console/actions/console-actions-routes.ts';
import { ACTIONS_RUNS_PAGE, ACTIONS_TEST_PAGE } from '../../src/features/console/actions/runs.ts';
import type { ConsoleFrame } from '../../src/features/console/render.ts';
import {
  USERS_EVENTS_PAGE,
  USERS_ORGANIZATIONS_PAGE,
  USERS_ROLES_PAGE,
} from '../../src/features/console/users/access.ts';
import { USERS_PROFILE_PAGE } from '../../src/features/console/users/console-user-profile.ts';
import {
  USERS_CONSENTS_PAGE,
  USERS_DEVICES_PAGE,
  USERS_SESSIONS_PAGE,
} from '../../src/features/console/users/console-user-sessions.ts';
import { USERS_NEW_PAGE } from '../../src/features/console/users/console-users-routes.ts';
import { USER_COLUMNS, USERS_LIST_PAGE } from '../../src/features/console/users/list.ts';
import { USERS_FACTORS_PAGE, USERS_IDENTITIES_PAGE } from '../../src/features/console/users/login-methods.ts';
import { TABS } from '../../src/features/console/users/paths.ts';
import { rightsOf } from '../../src/features/console/users/rights.ts';
import {
  USERS_JOB_PAGE,
  USERS_TRANSFER_PAGE,
  type UsersJobModel,
} from '../../src/features/console/users/transfer.ts';
import { USERS_DELETE_PAGE } from '../../src/features/console/users/user-actions.ts';
import type { UserAnswer } from '../../src/features/console/users/view.ts';
import { type SitePage, sitePages } from './site.ts';

const at = { iso: '2026-11-22T12:00:00.000Z', text: '22 Nov 2026, 12:00 UTC' };
const LONG = 'ada.lovelace.with.a.very.long.address@example-of-a-long-domain.test';
const AGENT =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36';

const rights = rightsOf({
  can: () => true,
  administrator: { userId: 'gatehouse|1', name: 'Ada Lovelace', email: LONG, role: 'owner' },
});

const listed: UserAnswer = {
  user_id: 'auth0|1',
  name: 'Ada Lovelace',
  email: LONG,
  last_login: at.iso,
  logins_count: 42,
  identities: ['Username-Password-Authentication', 'google-oauth2'].map((connection) => ({
    connection,
    user_id: '1',
    provider: 'auth0',
    isSocial: false,
  })),
};
const tableOf = (users: UserAnswer[]) => USER_COLUMNS.tableOf(users, (() => at) as FormatTime);
const search = { total: undefined, slow: undefined, isCut: false, isSearch: false };

const user = {
  id: 'auth0|67b1f0c3a2d4e5f6a7b8c9d0',
  name: 'Ada Lovelace',
  initial: 'A',
  isBlocked: true,
  isUnverified: true,
  lockouts: [{ address: '203.0.113.7' }],
};
const head = (tab: string) => ({
  users: '/console/users',
  path: '/console/users/auth0%7C1',
  tab,
  tabs: TABS.map((name) => ({ name, url: `/console/users/auth0%7C1/${name}` })),
  user,
  rights,
  values: {},
  faults: {},
});

const syntax = { status: 400, key: 'console.json.syntax', line: 2, column: 8, field: 'user_metadata' };
const profile = {
  profile: {
    name: 'Ada Lovelace',
    given_name: 'Ada',
    family_name: 'Lovelace',
    nickname: '',
    picture: '',
    phone_number: '+442079460000',
    username: '',
    email: LONG,
  },
  isVerified: { email: false, phone: false },
  facts: {
    connection: 'Username-Password-Authentication',
    created: at,
    lastLogin: at,
    lastAddress: '203.0.113.7',
    logins: 42,
  },
  hasPassword: true,
  metadata: [
    { name: 'user_metadata', text: '{\n  "city": x\n}', stamp: 'stamp' },
    { name: 'app_metadata', text: '{\n  "plan": "gold"\n}', stamp: 'stamp' },
  ],
};
const method = {
  id: 'totp|1',
  type: 'totp',
  kind: 'console.users.method.totp',
  isConfirmed: true,
  added: at,
};

const jobOf = (
  job: { isImport: boolean; location?: string; summary?: UsersJobModel['job']['summary'] },
  failures: UsersJobModel['failures'] = { lines: [], more: 0 },
): UsersJobModel => ({
  users: '/console/users',
  path: '/console/users/transfer',
  job: {
    isOpen: false,
    isFailed: false,
    details: undefined,
    done: 100,
    summary: undefined,
    begun: at,
    format: undefined,
    location: undefined,
    ...job,
  },
  failures,
});

const usersStates = (shell: ConsoleFrame): Record<string, SitePage> => {
  const page = sitePages({ ...shell, section: 'users', title: 'Users' });
  const tab = (name: string) => sitePages({ ...shell, section: 'users', title: 'Users', ...head(name) });
  return {
    '/console-users': page(USERS_LIST_PAGE, {
      ...{
        users: '/console/users',
        ...search,
        table: tableOf([listed, { ...listed, blocked: true, name: LONG }]),
        q: 'ada',
        rights,
      },
      ...{
        filter: '',
        connection: '',
        connections: ['users'],
        pages: { number: 2, before: '?', next: '?page=2', isEnd: false },
      },
    }),
    '/console-users-none': page(USERS_LIST_PAGE, {
      ...{
        users: '/console/users',
        ...search,
        table: tableOf([]),
        q: 'nobody',
        filter: 'blocked',
        connection: 'users',
        isSearch: true,
      },
      ...{ connections: ['users'], pages: { number: 1, isEnd: false }, rights },
    }),
    '/console-users-new': page(USERS_NEW_PAGE, {
      users: '/console/users',
      connections: ['users'],
      values: { connection: 'users', email: 'no address' },
      faults: { email: { status: 400, message: 'Invalid email address', field: 'email' } },
      fault: { status: 400, message: 'Invalid email address', field: 'email' },
    }),
    '/console-user': tab('profile')(USERS_PROFILE_PAGE, {
      ...profile,
      faults: { user_metadata: syntax },
      fault: syntax,
    }),
    '/console-user-link': tab('profile')(USERS_PROFILE_PAGE, {
      ...profile,
      link: `https://localhost/u/reset-password?ticket=${'x'.repeat(64)}`,
      linkHours: 24,
    }),
    '/console-user-identities': tab('identities')(USERS_IDENTITIES_PAGE, {
      identities: [
        { connection: 'users', provider: 'auth0', id: '67b1f0c3a2d4e5f6', isFirst: true, address: LONG },
        {
          connection: 'google-oauth2',
          provider: 'google-oauth2',
          id: '1234567890',
          isFirst: false,
          name: 'Ada',
          address: LONG,
        },
      ],
    }),
    '/console-user-factors': tab('factors')(USERS_FACTORS_PAGE, {
      factors: [method, { ...method, isConfirmed: false }],
      passkeys: [
        { ...method, type: 'passkey', kind: 'console.users.method.passkey', name: 'My laptop', used: at },
      ],
    }),
    '/console-user-sessions': tab('sessions')(USERS_SESSIONS_PAGE, {
      sessions: [
        {
          id: 's',
          agent: AGENT,
          address: '203.0.113.7',
          applications: ['Shop', 'Forum'],
          since: at,
          used: at,
        },
      ],
      tokens: [
        { id: 't', application: 'Shop', agent: AGENT, audiences: ['https://api.example.test/'], since: at },
      ],
    }),
    '/console-user-roles': tab('roles')(USERS_ROLES_PAGE, {
      roles: [{ id: 'rol_1', name: 'Reader', description: 'May read' }],
      permissions: [
        {
          name: 'read:things',
          api: 'api',
          apiName: 'Example API',
          isDirect: true,
          roles: ['Reader'],
          value: '[]',
        },
      ],
      otherRoles: [{ id: 'rol_2', name: 'Writer' }],
      otherPermissions: [{ api: 'Example API', name: 'write:things', value: '["api","write:things"]' }],
    }),
    '/console-user-organizations': tab('organizations')(USERS_ORGANIZATIONS_PAGE, {
      organizations: [{ id: 'org_1', name: 'acme', title: 'Acme' }],
    }),
    '/console-user-consents': tab('consents')(USERS_CONSENTS_PAGE, {
      grants: [
        { id: 'g', application: 'Forum', audience: 'https://api.example.test/', scopes: ['read', 'write'] },
      ],
    }),
    '/console-user-devices': tab('devices')(USERS_DEVICES_PAGE, {
      devices: [{ id: 'd', name: 'Telephone', application: 'App' }],
    }),
    '/console-user-events': tab('events')(USERS_EVENTS_PAGE, {
      events: [
        {
          path: '/console/log/1',
          words: 'Ada logged in',
          isBad: true,
          at,
          description: 'Wrong password',
          application: 'Shop',
          address: '203.0.113.7',
          agent: AGENT,
        },
      ],
      readsLog: true,
      hasBefore: false,
      before: -1,
      hasMore: true,
      next: 1,
    }),
    '/console-user-delete': page(USERS_DELETE_PAGE, {
      ...head('profile'),
      consequences: { identities: 2, sessions: 3, tokens: 1, methods: 0, organizations: 1 },
    }),
    '/console-users-transfer': page(USERS_TRANSFER_PAGE, {
      users: '/console/users',
      path: '/console/users/transfer',
      databases: [{ id: 'con_1', name: 'users' }],
      faults: {},
      fault: { status: 400, key: 'console.users.import.noFile' },
    }),
    '/console-users-job': page(
      USERS_JOB_PAGE,
      jobOf(
        { isImport: true, summary: { total: 4, inserted: 2, updated: 1, failed: 1 } },
        {
          lines: [
            {
              user: LONG,
              place: { number: 1 },
              errors: [{ message: 'The hash is not one', path: 'password_hash' }],
            },
          ],
          more: 3,
        },
      ),
    ),
    '/console-users-export': page(
      USERS_JOB_PAGE,
      jobOf({ isImport: false, location: 'https://localhost/users-exports/job' }),
    ),
  };
};

const ACTION_TABS = ['code', 'deploy', 'versions', 'test', 'runs'];
const action = (tab: string) => ({
  actionsPath: '/console/actions',
  path: '/console/actions/1',
  tab,
  tabs: ACTION_TABS.map((name) => ({ name, url: `/console/actions/1/${name}` })),
  action: {
    id: '1',
    name: 'Claims',
    trigger: 'post-login',
    isDeployed: true,
    isChanged: true,
    isBound: true,
    version: 3,
  },
  mayEdit: true,
  mayDeploy: true,
  mayDelete: true,
  faults: {},
});
const CODE = 'exports.onExecutePostLogin = async (event, api) => {\n  api.access.deny("no");\n};\n';
const diff: ActionsDiff = [
  { kind: 'gap' },
  { kind: 'same', text: 'exports.onExecutePostLogin = async (event, api) => {', before: 1, after: 1 },
  { kind: 'removed', text: "  api.access.deny('no');", before: 2 },
  { kind: 'added', text: '  return;', after: 2 },
];
const bound = {
  id: '1',
  name: 'Claims',
  url: '/console/actions/1',
  trigger: 'post-login',
  version: 3,
  isChanged: true,
  isDeployed: true,
};
const placed = { ...bound, mayFail: false, isFirst: false, isLast: false };

const actionsStates = (shell: ConsoleFrame): Record<string, SitePage> => {
  const page = sitePages({ ...shell, section: 'actions', title: 'Actions' });
  const tab = (name: string) =>
    sitePages({ ...shell, section: 'actions', title: 'Actions', ...action(name) });
  return {
    '/console-actions': page(ACTIONS_LIST_PAGE, {
      actionsPath: '/console/actions',
      triggers: [
        {
          id: 'post-login',
          stamp: 'stamp',
          bound: [
            { ...placed, isFirst: true },
            { ...placed, id: '2', name: 'Guard', mayFail: true, isLast: true },
          ],
          free: [
            { ...bound, id: '3', name: 'Draft', isDeployed: false },
            { ...bound, id: '4', name: 'Spare' },
          ],
        },
        { id: 'credentials-exchange', stamp: 'stamp', bound: [], free: [] },
      ],
      others: [{ ...bound, trigger: 'event-stream' }],
      mayCreate: true,
      mayOrder: true,
      hasNone: false,
      faults: {},
    }),
    '/console-actions-new': page(ACTIONS_NEW_PAGE, {
      actionsPath: '/console/actions',
      triggers: [{ id: 'post-login', template: CODE }],
      values: { name: 'Claims', trigger: 'post-login' },
      faults: {
        name: { status: 409, message: 'An action with the same name already exists.', field: 'name' },
      },
      fault: { status: 409, message: 'An action with the same name already exists.', field: 'name' },
    }),
    '/console-action': tab('code')(ACTIONS_CODE_PAGE, {
      code: CODE,
      dependencies: 'lodash@4.17.21',
      stamp: 'stamp',
      secrets: [{ name: 'KEY' }],
      modules: [
        { id: 'acm_1', name: 'shared', latest: 3, used: 2, isUsed: true },
        { id: 'acm_2', name: 'other', isUsed: false },
      ],
      fault: { status: 409, key: 'console.actions.draft.changed' },
    }),
    '/console-action-deploy': tab('deploy')(ACTIONS_DEPLOY_PAGE, { diff }),
    '/console-action-versions': tab('versions')(ACTIONS_VERSIONS_PAGE, {
      versions: [
        { id: 'b', number: 2, at, isDeployed: true, isChosen: false },
        { id: 'a', number: 1, at, isDeployed: false, isChosen: true },
      ],
      chosen: { id: 'a', number: 1, isDeployed: false, code: CODE, diff },
    }),
    '/console-action-test': tab('test')(ACTIONS_TEST_PAGE, {
      event: '{\n  "user": {}\n}',
      tried: {
        commands: [
          { method: 'idToken.setCustomClaim', args: '"https://example.com/plan", "gold"', isRefused: false },
          { method: 'user.setAppMetadata', args: '"plan", "gold"', isRefused: true },
        ],
        logs: [{ level: 'log', text: 'a line that was printed' }],
        used: { time: 12, cpu: 4, memory: 16, requests: 0 },
        failure: 'TypeError: nothing is not a function',
      },
    }),
    '/console-action-runs': tab('runs')(ACTIONS_RUNS_PAGE, {
      looked: '100',
      runs: [
        { execution: 'a1b2', trigger: 'post-login', at, isSuspended: false, took: 12 },
        {
          execution: 'a1b3',
          trigger: 'post-login',
          at,
          isSuspended: false,
          took: 3,
          failure: 'out of order',
        },
        { execution: 'a1b4', trigger: 'post-login', at, isSuspended: true },
      ],
    }),
    '/console-action-delete': page(ACTIONS_DELETE_PAGE, { ...action('code') }),
  };
};

/** Returns the pages by path. @param shell the data that all pages of the console share. */
export const consoleUsersPages = (shell: ConsoleFrame): Record<string, SitePage> => ({
  ...usersStates(shell),
  ...actionsStates(shell),
});
