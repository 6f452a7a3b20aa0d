// States of the console's log pages, with values that strangers may have chosen.

import { LOG_EVENT_PAGE, LOG_LIST_PAGE } from '../../src/features/console/log/console-log-routes.ts';
import { sitePage } from './site.ts';

const then = { iso: '2026-11-22T12:00:00.000Z', text: 'Nov 22, 2026, 12:00:00 PM UTC' };

const frame = {
  root: '/console',
  csrf: 'token',
  section: 'log',
  title: 'Log',
  isFresh: true,
  administrator: {
    userId: 'gatehouse|1',
    name: 'Ada Lovelace',
    email: 'ada@example.test',
    role: 'owner' as const,
  },
  nav: ['overview', 'log'].map((name) => ({
    path: name === 'overview' ? '/console' : `/console/${name}`,
    text: `console.nav.${name}`,
    isCurrent: name === 'log',
  })),
};

const failed = {
  path: '/console/log/1',
  type: 'fp',
  time: then,
  words: 'a-very-long-name-of-somebody-who-typed-it@example.test gave a wrong password or code.',
  isBad: true,
  why: 'Wrong email or password. <script>alert(1)</script>',
  actor: '',
  client: 'The Shop',
  connection: 'users',
  ip: '2001:db8:85a3::8a2e:370:7334',
  seconds: 0,
};
const done = { ...failed, type: 's', words: 'Ada logged in.', isBad: false, why: undefined, seconds: 12.5 };
const filter = {
  type: '',
  user: '',
  client: '',
  actor: '',
  connection: '',
  ip: '',
  from: '',
  to: '',
  q: '',
  before: '',
};

const list = {
  ...frame,
  path: '/console/log',
  filter,
  isOpen: true,
  isNewest: true,
  groups: [{ name: 'failures', text: 'console.log.group.failures' }],
  types: [{ name: 's', text: 'Somebody logged in.' }],
  clients: [{ client_id: 'shop', name: 'The Shop' }],
  connections: [{ name: 'users' }],
  days: 30,
  events: [failed, done],
  newest: '/console/log',
  older: '/console/log?before=1',
};

/** The pages by path. */
export const consoleLogPages = {
  '/console-log': sitePage(LOG_LIST_PAGE, list),
  '/console-log-empty': sitePage(
    LOG_LIST_PAGE,
    {
      ...list,
      events: [],
      older: undefined,
      clients: undefined,
      connections: undefined,
      isOpen: false,
      isNewest: false,
      filter: { ...filter, q: '((', user: 'ada' },
      alert: 'Invalid search query.',
    },
    { status: 400 },
  ),
  '/console-log-event': sitePage(LOG_EVENT_PAGE, {
    ...frame,
    path: '/console/log',
    event: { ...failed, meaning: 'A password or code was wrong.' },
    fields: [
      { text: 'console.log.user', value: 'ada@example.test · auth0|1' },
      { text: 'console.log.ip', value: '203.0.113.9' },
    ],
    userPath: '/console/users/1',
    json: JSON.stringify({ type: 'fp', description: '<b>' }, undefined, 2),
    story: {
      outcome: 'console.log.story.refused.why',
      who: 'Ada',
      why: 'user is blocked',
      steps: [
        { ...failed, isThis: true },
        { ...done, isThis: false },
      ],
      isCut: true,
      most: 100,
    },
  }),
};
