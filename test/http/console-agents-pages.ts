// States of the console's section "Agents".
import { AGENT_PAGE } from '../../src/features/console/agents/agent.ts';
import {
  AGENTS_API_PAGE,
  AGENTS_APIS_PAGE,
  type ApiAccess,
} from '../../src/features/console/agents/agents-apis.ts';
import { AGENTS_DOCUMENTS_PAGE } from '../../src/features/console/agents/agents-documents.ts';
import { AGENTS_REGISTRATION_PAGE } from '../../src/features/console/agents/agents-registration.ts';
import type { ShownAgent } from '../../src/features/console/agents/agents-shown.ts';
import { AGENTS_PAGE } from '../../src/features/console/agents/console-agents-routes.ts';
import {
  AGENTS_DEVICE_CODE_PAGE,
  AGENTS_DEVICE_PAGE,
  AGENTS_PROGRAMS_PAGE,
} from '../../src/features/console/programs/console-programs-routes.ts';
import { scopeWords } from '../../src/features/console/programs/scope-words.ts';
import type { ConsoleFrame } from '../../src/features/console/render.ts';
import { sitePage } from './site.ts';

const then = { iso: '2026-11-22T12:00:00.000Z', text: 'Nov 22, 2026, 12:00 PM UTC' };
const path = '/console/agents';
const tabs = [
  { path, text: 'console.agents.tab.applications', isCurrent: true },
  { path: `${path}/apis`, text: 'console.agents.tab.apis', isCurrent: false },
  { path: `${path}/programs`, text: 'console.agents.tab.programs', isCurrent: false },
];

const MANY_SCOPES = [
  'clients',
  'client_grants',
  'organization_discovery_domains',
  'token_exchange_profiles',
  'users',
]
  .flatMap((noun) => ['create', 'delete', 'read', 'update'].map((verb) => `${verb}:${noun}`))
  .concat('read:client_keys', 'read:logs');
const device = {
  action: '/console/device',
  userCode: 'WDJB-MJHT',
  seen: 's',
  client: { name: 'Assistant', id: '2lhnuYMRQ8IpR5hNsOhDFQqrGQUQMRm5', isPublic: true },
  ip: '203.0.113.7',
  until: then,
};

const agent: ShownAgent = {
  path: `${path}/applications/tpc_4711`,
  id: 'tpc_4711',
  name: 'Research [U+202E]assistant',
  places: [{ host: 'agent.tools.long-name-of-a-host.example.test' }, { scheme: 'com.example.agent:' }],
  otherPlaces: 2,
  isUnverified: true,
  isBlocked: true,
  used: then,
  users: { count: 1000, isMore: true },
};
const other: ShownAgent = {
  ...agent,
  name: 'Partner portal',
  places: [{ device: true }],
  otherPlaces: 0,
  isUnverified: false,
  isBlocked: false,
  used: undefined,
  users: { count: 3, isMore: false },
};

const api: ApiAccess = {
  id: 'api',
  name: 'Tools',
  identifier: 'https://mcp.example.test/mcp',
  policy: 'allow_all',
  state: 'open',
  scopes: [
    { value: 'tools:read', description: 'Use the tools that only read', isOpen: true },
    { value: 'tools:write', description: '', isOpen: false },
  ],
  openCount: 1,
  grant: { id: 'cgr', isForUsers: true },
  authorization: {},
};
const apis: ApiAccess[] = [
  api,
  { ...api, name: 'Orders', state: 'own', openCount: 0, grant: undefined },
  { ...api, name: 'Books', state: 'closed', policy: 'deny_all' },
];
const opened = { apis: [api, { ...api, openCount: 0 }], connections: ['users', 'Staff'] };
const registration = { isOn: true, mode: 'permissive', needsToken: false, days: '30' } as const;
const fault = { status: 400, key: 'console.agents.days.fault', field: 'days' };

/** Returns the pages by path. @param frame the data that all pages of the console share. */
export const consoleAgentsPages = (frame: ConsoleFrame) => {
  const model = { ...frame, section: 'agents', title: 'Agents', isFresh: false };
  const list = {
    ...model,
    tabs,
    path,
    registrationPath: `${path}/registration`,
    registration,
    documentsPath: `${path}/documents`,
    documents: { isOn: true, allowed: '', denied: '' },
    mayTurn: true,
    text: 'research',
    state: 'blocked',
    states: ['used', 'unused', 'blocked'].map((name) => ({ name, text: `console.agents.state.${name}` })),
    agents: [agent, { ...agent, otherPlaces: 0, isBlocked: false, used: undefined }],
    next: `${path}?from=abc`,
    isFirstPage: false,
    others: [other],
    hasMoreOthers: true,
    exchanges: '/console/log?q=type',
  };
  return {
    '/console-agents': sitePage(AGENTS_PAGE, list),
    '/console-agents-none': sitePage(AGENTS_PAGE, {
      ...list,
      registration: { ...registration, isOn: false },
      documents: { isOn: false, allowed: '', denied: '' },
      agents: [],
      others: [],
      text: '',
      state: '',
      next: undefined,
      isFirstPage: true,
    }),
    '/console-agents-registration': sitePage(
      AGENTS_REGISTRATION_PAGE,
      {
        ...model,
        path: `${path}/registration`,
        agentsPath: path,
        settings: { ...registration, isOn: false, days: '0' },
        modes: ['strict', 'permissive'].map((name) => ({
          name,
          text: `console.agents.mode.${name}`,
          isCurrent: name === 'strict',
        })),
        opened,
        mostDays: 365,
        faults: { days: fault },
        faultyField: { field: 'days', label: 'Days' },
      },
      { status: 400 },
    ),
    '/console-agents-documents': sitePage(AGENTS_DOCUMENTS_PAGE, {
      ...model,
      path: `${path}/documents`,
      agentsPath: path,
      settings: { isOn: true, allowed: 'agents.example.test\n*.tools.example.test', denied: '' },
      opened: { apis: [], connections: [] },
    }),
    '/console-agents-apis': sitePage(AGENTS_APIS_PAGE, {
      ...model,
      tabs,
      apis: apis.map((one) => ({ ...one, path: `${path}/apis/${one.id}` })),
      mayChange: true,
    }),
    '/console-agents-api': sitePage(AGENTS_API_PAGE, {
      ...model,
      title: 'Tools',
      api,
      path: `${path}/apis/api`,
      apisPath: `${path}/apis`,
      policies: ['allow_all', 'require_client_grant', 'deny_all'].map((name) => ({
        name,
        text: `console.agents.policy.${name}`,
        isCurrent: name === 'allow_all',
      })),
    }),
    '/console-agent': sitePage(AGENT_PAGE, {
      ...model,
      title: agent.name,
      agentsPath: path,
      path: agent.path,
      agent,
      callbacks: [
        'https://agent.tools.long-name-of-a-host.example.test/callback',
        'com.example.agent:/callback',
      ],
      registered: { at: then, until: then },
      isStrict: false,
      hasSecret: false,
      consents: [
        {
          user: 'auth0|1',
          name: 'ada@example.test',
          path: '/console/users/auth0%7C1',
          apis: [
            { audience: undefined, scopes: 'openid profile' },
            { audience: api.identifier, scopes: 'tools:read' },
          ],
        },
        { user: 'auth0|2', name: 'auth0|2', path: undefined, apis: [] },
      ],
      next: `${agent.path}?after=auth0%7C2`,
      isFirstPage: true,
      rights: { block: true, remove: true, end: true },
      settings: '/console/resources/clients/tpc_4711',
      log: { own: '/console/log?client=tpc_4711', acted: '/console/log?actor=tpc_4711' },
    }),
    '/console-agents-programs': sitePage(AGENTS_PROGRAMS_PAGE, {
      ...model,
      tabs,
      action: `${path}/programs`,
      approvalPath: '/console/device',
      isOfAll: true,
      programs: [
        {
          id: '1',
          user: 'gatehouse|1',
          administrator: 'somebody.with.a.long.name@console.example.test',
          name: 'Assistant',
          clientId: '2lhnuYMRQ8IpR5hNsOhDFQqrGQUQMRm5',
          scopes: MANY_SCOPES.join(' '),
          issued: then,
          until: then,
        },
      ],
    }),
    '/console-agents-no-programs': sitePage(AGENTS_PROGRAMS_PAGE, {
      ...model,
      tabs,
      action: `${path}/programs`,
      approvalPath: '/console/device',
      isOfAll: false,
      programs: [],
    }),
    '/console-device-code': sitePage(AGENTS_DEVICE_CODE_PAGE, {
      ...model,
      title: 'Approve a program',
      action: '/console/device',
      typed: 'WDJB-MJHX',
      alert: 'That code is wrong or expired.',
    }),
    '/console-device': sitePage(AGENTS_DEVICE_PAGE, {
      ...model,
      title: 'Approve a program',
      ...device,
      ...scopeWords(MANY_SCOPES),
      beyondRole: [],
      hasNothing: false,
    }),
    '/console-device-role': sitePage(AGENTS_DEVICE_PAGE, {
      ...model,
      title: 'Approve a program',
      ...device,
      client: { name: 'Donaudampfschifffahrtsgesellschaftsassistent', id: 'assistant', isPublic: false },
      ip: '2001:db8:85a3:8d3:1319:8a2e:370:7348',
      reading: scopeWords(MANY_SCOPES).reading,
      changing: [],
      beyondRole: scopeWords(MANY_SCOPES).changing,
      hasNothing: false,
    }),
    '/console-device-nothing': sitePage(AGENTS_DEVICE_PAGE, {
      ...model,
      title: 'Approve a program',
      ...device,
      reading: [],
      changing: [],
      beyondRole: scopeWords(['create:clients']).changing,
      hasNothing: true,
    }),
  };
};
