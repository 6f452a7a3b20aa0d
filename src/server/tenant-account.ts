// The dependencies of the account page.

import { refreshTokenDirectory } from '../engine/session/refresh-directory.ts';
import { sessionDirectory } from '../engine/session/session-directory.ts';
import type { Actor } from '../features/account/actor.ts';
import { ACCOUNT } from '../features/account/page/callbacks.ts';
import { issueTicketLink } from '../features/connections/database/ticket-link.ts';
import { firstMethod } from '../features/connections/first-method.ts';
import type { Connection } from '../records/collections.ts';
import type { Capabilities, ServedDependencies } from './capabilities.ts';
import type { TenantEngine } from './tenant-engine.ts';

/** How long a user may take to set a new password at the account page, seconds. */
const PASSWORD_SECONDS = 600;

/** Returns the dependencies of the account page and the account API, by name. */
export function accountDependencies(
  deps: ServedDependencies,
  capabilities: Capabilities,
  { accountLogins, engine: { sessions }, factorDependencies }: TenantEngine,
) {
  const { settings, store, clock, wallClock, random } = deps;
  const { baseUrl } = settings;
  const { challenges, config, users } = capabilities;
  const proofOf = (connection: string) => firstMethod(config, connection);
  return {
    ...factorDependencies,
    accountLogins,
    endOtherSessions: async (userId: string, keepSid: string) => {
      await sessions.endAllOf(userId, { reason: 'session-revoked', keepSid, refreshTokens: true });
    },
    callers: capabilities.callers,
    customDatabases: capabilities.customDatabases,
    factorChanges: capabilities.factorChanges,
    passwordLink: ({ user, clientId, login }: Actor, connection: Connection) =>
      issueTicketLink({ baseUrl, challenges, random, users }, 'reset', {
        user,
        connection,
        clientId,
        ttlSeconds: PASSWORD_SECONDS,
        resultUrl: `${baseUrl}${ACCOUNT}`,
        includeEmail: false,
        marksVerified: false,
        session: login.id,
      }),
    refreshTokens: refreshTokenDirectory({ store, config, challenges }),
    sessionDirectory: sessionDirectory({ store, config, clock, wallClock, sessions, firstMethod: proofOf }),
    sessions,
    store,
  };
}
