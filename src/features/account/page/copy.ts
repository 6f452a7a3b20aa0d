// A copy of the data stored of a user, for that user. It has no secrets, and no metadata that the tenant keeps for
// itself.
import type { RefreshTokenDirectory } from '../../../engine/refresh-directory.ts';
import type { SessionDirectory } from '../../../engine/session-directory.ts';
import type { AuthenticatorRecord } from '../../../records/authenticators.ts';
import type { LogEventRecord } from '../../../records/log-events.ts';
import type { Frozen } from '../../../records/record.ts';
import { IDENTITY_MEMBERS, SERVER_MEMBERS } from '../../../records/users.ts';
import type { Store } from '../../../store/contract.ts';
import { connectedAccountsOf, connectedAccountView } from '../../../users/connected-accounts.ts';
import type { Identity } from '../../../users/identities.ts';
import type { Users } from '../../../users/users.ts';

export interface CopyDependencies {
  refreshTokens: RefreshTokenDirectory;
  sessionDirectory: SessionDirectory;
  store: Store;
  users: Users;
}

/** The members of the user's record in the copy. `app_metadata` is the tenant's. */
const MEMBERS = ['id', ...IDENTITY_MEMBERS, 'user_metadata', ...SERVER_MEMBERS] as const;

/** How many log events the copy has, the newest first. */
const EVENTS = 1_000;

/** Returns a copy of a user's data. */
export async function copyOfData(deps: CopyDependencies, userId: string): Promise<object> {
  const { store, users } = deps;
  const [
    user,
    identities,
    sessions,
    tokens,
    consents,
    authenticators,
    passkeys,
    memberships,
    connected,
    logs,
  ] = await Promise.all([
    users.get(userId),
    users.identitiesOf(userId),
    deps.sessionDirectory.of(userId),
    deps.refreshTokens.of(userId),
    store.collection('consents').findBy('user', userId),
    store.collection('authenticators').findBy('user', userId),
    store.collection('passkeys').findBy('user', userId),
    store.collection('memberships').findBy('user', userId),
    connectedAccountsOf(deps, userId),
    store.collection('logs').list({
      where: { field: 'user_id', equals: userId },
      sort: { field: 'date', descending: true },
      limit: EVENTS,
    }),
  ]);
  return {
    profile: Object.fromEntries(
      MEMBERS.flatMap((name) => (user?.[name] === undefined ? [] : [[name, user[name]]])),
    ),
    identities: identities.map(identityOf),
    sessions: sessions.map(({ session_metadata: _notes, ...session }) => session),
    refresh_tokens: tokens.map(({ refresh_token_metadata: _notes, ...token }) => token),
    consents: consents.map(({ client_id, scopes }) => ({ client_id, scopes })),
    authentication_methods: [
      ...authenticators.filter(({ active }) => active).map(factorOf),
      ...passkeys.map(({ name, user_agent, created_at, last_used_at }) => ({
        type: 'passkey',
        name,
        user_agent,
        created_at,
        last_used_at,
      })),
    ],
    connected_accounts: connected.map(connectedAccountView),
    organizations: memberships.map(({ organization_id }) => organization_id),
    log: logs.records.map(eventOf),
  };
}

function identityOf(one: Identity) {
  const { connection, provider, upstream_id: user_id, email, username, phone_number, profile } = one;
  return { connection, provider, user_id, email, username, phone_number, profile };
}

/**
 * Leaves out the details: for administrators they hold requests and answers of the Management API, with others'
 * data.
 */
function eventOf({ date, type, description, client_id, connection, user_name, ip }: Frozen<LogEventRecord>) {
  return { date, type, description, client_id, connection, user_name, ip };
}

function factorOf({ kind, name, phone_number, email, created_at }: Frozen<AuthenticatorRecord>) {
  return { type: kind, name, phone_number, email, created_at };
}
