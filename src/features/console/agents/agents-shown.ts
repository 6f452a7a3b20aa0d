// What the pages about agents share: their tabs, and how the application of a stranger is shown.
import type { Context } from 'koa';
import type { FormattedTime } from '../../../capabilities/pages/times.ts';
import {
  isSelfRegistered,
  type Recipient,
  recipientOf,
  visibleName,
} from '../../../records/clients/third-parties.ts';
import type { Client } from '../../../records/collections.ts';
import type { Store } from '../../../store/contract.ts';
import { type ApiCallDependencies, callApi } from '../api-calls.ts';
import { CONSOLE } from '../console-callbacks.ts';
import type { ConsolePageDependencies, ConsoleSession } from '../console-page.ts';

export interface AgentsDependencies extends ConsolePageDependencies, ApiCallDependencies {
  store: Store;
}

export const AGENTS = `${CONSOLE}/agents`;

/** Returns the settings of the tenant, as the API answers them. */
export const tenantSettings = async (
  deps: AgentsDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<unknown> => (await callApi(deps, ctx, session, 'GET /tenants/settings')).body;

/** The scopes of each tab, by the last segment of its path. */
export const TAB_SCOPES = {
  applications: ['read:clients', 'read:tenant_settings', 'read:grants'],
  apis: ['read:resource_servers', 'read:client_grants'],
  // Administrators see their own.
  programs: [],
} as const satisfies Record<string, readonly string[]>;

export const UPDATE_TENANT = 'update:tenant_settings';

/** The scopes to let strangers' applications in, on pages that show what this opens. */
export const LET_IN: readonly string[] = [
  ...TAB_SCOPES.applications,
  ...TAB_SCOPES.apis,
  'read:connections',
  UPDATE_TENANT,
];

type Tab = keyof typeof TAB_SCOPES;

export interface AgentsTab {
  path: string;
  /** A message key. */
  text: string;
  isCurrent: boolean;
}

export function agentsTabs({ can }: ConsoleSession, current: Tab): AgentsTab[] {
  return (Object.keys(TAB_SCOPES) as Tab[])
    .filter((tab) => TAB_SCOPES[tab].every(can))
    .map((tab) => ({
      path: tab === 'applications' ? AGENTS : `${AGENTS}/${tab}`,
      text: `console.agents.tab.${tab}`,
      isCurrent: tab === current,
    }));
}

/** An application as a list shows it. */
export interface ShownAgent {
  path: string;
  id: string;
  name: string;
  /** Where the answers to its requests go: a few, and how many others there are. */
  places: Recipient[];
  otherPlaces: number;
  /** Whether it chose its name itself. */
  isUnverified: boolean;
  isBlocked: boolean;
  used: FormattedTime | undefined;
  /** How many users have allowed it something; `isMore`: at least so many. */
  users: { count: number; isMore: boolean };
}

const MOST_PLACES = 3;
/** The maximum number to which users are counted. */
const MOST_USERS = 1_000;

export async function shownAgent(
  store: Store,
  client: Pick<Client, 'client_id' | 'name' | 'callbacks' | 'is_first_party'> &
    Parameters<typeof isSelfRegistered>[0],
  { isBlocked, used }: Pick<ShownAgent, 'isBlocked' | 'used'>,
): Promise<ShownAgent> {
  const places = new Map(
    client.callbacks.flatMap((uri) => {
      const place = recipientOf(uri);
      return place === undefined ? [] : [[JSON.stringify(place), place] as const];
    }),
  );
  const where = { index: 'client', equals: client.client_id };
  const { total = 0 } = await store.collection('consents').list({ where, limit: 1, total: MOST_USERS });
  return {
    path: agentPath(client.client_id),
    id: client.client_id,
    name: visibleName(client),
    places: [...places.values()].slice(0, MOST_PLACES),
    otherPlaces: Math.max(0, places.size - MOST_PLACES),
    isUnverified: isSelfRegistered(client),
    isBlocked,
    used,
    users: { count: total, isMore: total >= MOST_USERS },
  };
}

export const agentPath = (clientId: string): string =>
  `${AGENTS}/applications/${encodeURIComponent(clientId)}`;
