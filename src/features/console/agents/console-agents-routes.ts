// /console/agents: the applications of others, above all those that registered themselves.
import type { Context } from 'koa';
import { timesOf } from '../../../capabilities/pages/times.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import type { Frozen } from '../../../records/base/record.ts';
import type { RegistrationRecord } from '../../../records/clients/registrations.ts';
import type { Client } from '../../../records/collections.ts';
import type { Filter, Store } from '../../../store/contract.ts';
import { cursorId, cursorOf } from '../../management/list.ts';
import { registrationsAfter } from '../../management/resources/clients/registrations-list.ts';
import { CONSOLE } from '../console-callbacks.ts';
import { type ConsoleSession, consolePage } from '../console-page.ts';
import { hrefOf, readFilter } from '../log/console-log-filter.ts';
import { pageNumber, queryText } from '../query.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { type AgentDependencies, agentRoutes } from './agent.ts';
import { agentsApisRoutes } from './agents-apis.ts';
import { type DocumentSettings, documentSettingsOf, documentsRoutes } from './agents-documents.ts';
import {
  type RegistrationSettings,
  registrationRoutes,
  registrationSettingsOf,
} from './agents-registration.ts';
import {
  AGENTS,
  type AgentsDependencies,
  type AgentsTab,
  agentsTabs,
  type ShownAgent,
  shownAgent,
  TAB_SCOPES,
  tenantSettings,
  UPDATE_TENANT,
} from './agents-shown.ts';

export type { AgentDependencies } from './agent.ts';

const PER_PAGE = 25;
/** How many of those that an administrator made are shown here; the list of applications has all. */
const MOST_OTHERS = 50;
const MAX_TEXT = 200;
/** The events of exchanges, as the log is searched. */
const EXCHANGES = 'type:*on_behalf_of_token_exchange OR type:secte OR type:fecte';

/** What became of them; each is an index, so that a page does not read all. */
const STATES: Readonly<Record<string, Filter>> = {
  used: { index: 'kind', equals: 'used' },
  unused: {
    any: [
      { index: 'kind', equals: 'unused' },
      { index: 'kind', equals: 'unused document' },
    ],
  },
  blocked: { index: 'blocked', equals: 'yes' },
};

export const agentsRoutes: RouteDeclarations<AgentDependencies> = {
  [`GET ${AGENTS}` as const]: consolePage<AgentDependencies>(
    'agents',
    { scopes: TAB_SCOPES.applications },
    showAgents,
  ),
  ...registrationRoutes,
  ...documentsRoutes,
  ...agentsApisRoutes,
  ...agentRoutes,
};

interface AgentsModel {
  tabs: AgentsTab[];
  path: string;
  registrationPath: string;
  registration: RegistrationSettings;
  documentsPath: string;
  documents: DocumentSettings;
  mayTurn: boolean;
  text: string;
  state: string;
  states: { name: string; text: string }[];
  agents: ShownAgent[];
  next: string | undefined;
  isFirstPage: boolean;
  others: ShownAgent[];
  hasMoreOthers: boolean;
  /** Token exchanges in the log, for those who may see it. */
  exchanges: string | undefined;
}

export const AGENTS_PAGE = declareConsolePage<AgentsModel>('console/agents');

async function showAgents(deps: AgentsDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const text = queryText(ctx, 'text').trim().slice(0, MAX_TEXT);
  const state = Object.hasOwn(STATES, queryText(ctx, 'state')) ? queryText(ctx, 'state') : '';
  const request = { text, state, from: queryText(ctx, 'from') };
  const { records, next } = await pageOf(deps.store, request);
  // A use is written at most once a day.
  const day = timesOf(deps, ctx, 'day');
  const others = (await deps.config.clients())
    .filter((client) => client.is_first_party === false)
    .sort((a, b) => a.name.localeCompare(b.name));
  const withParameters = (parameters: Record<string, string>) => {
    const given = Object.entries({ text, state, ...parameters }).filter(([, value]) => value !== '');
    return given.length === 0 ? AGENTS : `${AGENTS}?${new URLSearchParams(given)}`;
  };
  const settings = await tenantSettings(deps, ctx, session);
  await renderConsole(deps, ctx, session, {
    page: AGENTS_PAGE,
    title: 't:console.nav.agents',
    model: {
      tabs: agentsTabs(session, 'applications'),
      path: AGENTS,
      registrationPath: `${AGENTS}/registration`,
      registration: registrationSettingsOf(settings),
      documentsPath: `${AGENTS}/documents`,
      documents: documentSettingsOf(settings),
      mayTurn: session.can(UPDATE_TENANT),
      text,
      state,
      states: Object.keys(STATES).map((name) => ({ name, text: `console.agents.state.${name}` })),
      agents: await Promise.all(
        records.map((record) =>
          shownAgent(deps.store, record.client as Client, {
            isBlocked: record.blocked_at !== undefined,
            used: day(record.last_used_at),
          }),
        ),
      ),
      next: next === undefined ? undefined : withParameters({ from: next }),
      isFirstPage: request.from === '',
      others: await Promise.all(
        others
          .slice(0, MOST_OTHERS)
          .map((client) => shownAgent(deps.store, client, { isBlocked: false, used: undefined })),
      ),
      hasMoreOthers: others.length > MOST_OTHERS,
      exchanges: session.can('read:logs')
        ? hrefOf(`${CONSOLE}/log`, readFilter({ q: EXCHANGES }))
        : undefined,
    },
  });
}

/**
 * Returns a page of them. All are in the order of their registration, those of a state in that of their ids, and what a
 * search finds in that of the alphabet: so each is read from an index.
 */
async function pageOf(
  store: Store,
  { text, state, from }: { text: string; state: string; from: string },
): Promise<{ records: readonly Frozen<RegistrationRecord>[]; next: string | undefined }> {
  const registrations = store.collection('registrations');
  const where = STATES[state];
  const terms = text.toLowerCase();
  if (terms !== '') {
    const search: Filter = { index: 'search', prefix: terms };
    const page = pageNumber(from);
    const { records, next } = await registrations.list({
      where: where === undefined ? search : { all: [search, where] },
      order: 'any',
      page,
      limit: PER_PAGE,
    });
    return { records, next: next === undefined ? undefined : String(page + 1) };
  }
  const after = from === '' ? undefined : cursorId(from);
  const { records, next } =
    where === undefined
      ? await registrationsAfter(store, { after, take: PER_PAGE })
      : await registrations.list({ where, limit: PER_PAGE, ...(after !== undefined && { after }) });
  return { records, next: next === undefined ? undefined : cursorOf(next) };
}
