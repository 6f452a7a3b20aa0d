// `/tickets`: links that an application gives to a user, to set a password or verify an e-mail address.
import { z } from 'zod';
import type { Connection } from '../../../../records/collections.ts';
import { strategyRecord } from '../../../../records/connections/connections.ts';
import { changesPasswords } from '../../../../records/database-options.ts';
import type { Store } from '../../../../store/contract.ts';
import type { Config } from '../../../../tenant/config.ts';
import { primaryIdentity } from '../../../../users/changes.ts';
import type { NewTicket } from '../../../../users/ticket.ts';
import type { User } from '../../../../users/user.ts';
import type { Users } from '../../../../users/users.ts';
import { type Answer, type Call, callsWith } from '../../call.ts';
import { apiError } from '../../management-errors.ts';
import { noUser } from './user-calls.ts';

export interface TicketsDependencies {
  store: Store;
  users: Users;
  config: Pick<Config, 'client'>;
  /** Imports the user with an address from a custom database; undefined if the database has none. */
  findInCustomDatabase(query: { connection: Connection; identifier: string }): Promise<User | undefined>;
  issueTicket(kind: 'reset' | 'verification', ticket: NewTicket): Promise<string>;
}

/** Default lifetime of a ticket, in seconds: five days. */
const DEFAULT_LIFETIME_SECONDS = 432_000;
const MAX_LIFETIME_SECONDS = 10 * 365 * 24 * 3600;

const commonMembers = {
  result_url: z
    .url({ protocol: /^https?$/ })
    .max(2048)
    .nullish(),
  client_id: z.string().max(255).nullish(),
  organization_id: z.string().max(64).nullish(),
  ttl_sec: z.int().min(0).max(MAX_LIFETIME_SECONDS).nullish(),
  includeEmailInRedirect: z.boolean().nullish(),
  identity: z
    .strictObject({
      user_id: z.string().max(300),
      provider: z.string().max(64),
      connection_id: z.string().max(64).optional(),
    })
    .nullish(),
};

const passwordBody = z.strictObject({
  ...commonMembers,
  user_id: z.string().min(1).max(300).nullish(),
  email: z.string().max(320).nullish(),
  connection_id: z.string().max(64).nullish(),
  mark_email_as_verified: z.boolean().nullish(),
});

const verificationBody = z.strictObject({ ...commonMembers, user_id: z.string().min(1).max(300) });

type Common = z.output<typeof verificationBody>;

const invalid = (message: string) => apiError(400, message, 'invalid_body');

/** Returns the user that a body names, and the connection of the identity. @throws AuthError 4xx */
async function userOf(
  deps: TicketsDependencies,
  body: z.output<typeof passwordBody>,
): Promise<{ user: User; connection: Connection }> {
  const { user_id, email, connection_id, identity: identityReference } = body;
  const connections = deps.store.collection('connections');
  if (user_id == null) {
    if (email == null || connection_id == null) {
      throw invalid('Either user_id, or email and connection_id is required.');
    }
    const connection = await connections.get(connection_id);
    if (connection === undefined)
      throw apiError(404, 'The connection does not exist', 'inexistent_connection');
    const found =
      (await deps.users.findInConnection(connection, email)) ??
      (await deps.findInCustomDatabase({ connection, identifier: email }));
    if (found === undefined) throw noUser();
    return { user: found, connection };
  }
  if (email != null) throw invalid('user_id and email are not given together.');
  const user = await deps.users.get(user_id);
  if (user === undefined) throw noUser();
  const identities = await deps.users.identitiesOf(user.id);
  const identity =
    identityReference == null
      ? primaryIdentity(identities)
      : identities.find(
          (one) =>
            one.upstream_id === identityReference.user_id && one.provider === identityReference.provider,
        );
  if (identity === undefined) throw invalid('The user has no such identity.');
  const [connection] = await connections.findBy('name', identity.connection);
  if (connection === undefined) throw invalid('The connection of the user is gone.');
  return { user, connection };
}

/** Returns the members that both kinds of tickets have. @throws AuthError 4xx */
async function commonOf(deps: TicketsDependencies, body: Omit<Common, 'user_id'>) {
  const { result_url, client_id, organization_id, ttl_sec, includeEmailInRedirect } = body;
  if (result_url != null && client_id != null)
    throw invalid('result_url and client_id are not given together.');
  if (client_id != null && (await deps.config.client(client_id)) === undefined) {
    throw apiError(404, 'The client does not exist', 'inexistent_client');
  }
  const organization =
    organization_id == null ? undefined : await deps.store.collection('organizations').get(organization_id);
  if (organization_id != null && organization === undefined) {
    throw apiError(404, 'No organization found by that id or name');
  }
  return {
    resultUrl: result_url ?? undefined,
    clientId: client_id ?? undefined,
    organization: organization?.name,
    ttlSeconds: ttl_sec == null || ttl_sec === 0 ? DEFAULT_LIFETIME_SECONDS : ttl_sec,
    includeEmail: includeEmailInRedirect ?? false,
  };
}

/** The response is not logged, because anyone who reads the link can use it. */
const ticketAnswer = (url: string): Answer => ({ status: 201, body: { ticket: `${url}#` } });

const call = callsWith<TicketsDependencies>();

export const ticketCalls: Call<TicketsDependencies>[] = [
  call({
    method: 'POST',
    path: '/tickets/password-change',
    scopes: ['create:user_tickets'],
    summary: 'Create a password change ticket',
    body: passwordBody,
    handle: async (deps, { body }) => {
      const common = await commonOf(deps, body);
      const { user, connection } = await userOf(deps, body);
      if (strategyRecord(connection.strategy)?.isDatabase !== true || !changesPasswords(connection)) {
        throw invalid('Passwords of this connection are not kept here.');
      }
      const marksVerified = body.mark_email_as_verified ?? false;
      return ticketAnswer(await deps.issueTicket('reset', { ...common, user, connection, marksVerified }));
    },
  }),
  call({
    method: 'POST',
    path: '/tickets/email-verification',
    scopes: ['create:user_tickets'],
    summary: 'Create an email verification ticket',
    body: verificationBody,
    handle: async (deps, { body }) => {
      const common = await commonOf(deps, body);
      const { user, connection } = await userOf(deps, body);
      if (user.email === undefined) throw invalid('The user has no e-mail address to verify.');
      return ticketAnswer(
        await deps.issueTicket('verification', { ...common, user, connection, marksVerified: true }),
      );
    },
  }),
];
