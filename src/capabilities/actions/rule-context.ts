// `user` and `context` of rules, made from the event of actions; and the calls that stand for what rules changed in
// them.
import { z } from 'zod';
import type { Command } from './commands.ts';
import { assertionCommands } from './rule-assertion.ts';

interface RuleState {
  user: Readonly<Record<string, unknown>>;
  context: Readonly<Record<string, unknown>>;
}

type Members = Readonly<Record<string, unknown>>;

/** Returns a value that is an object; undefined for anything else. */
const membersOf = (value: unknown): Members | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Members) : undefined;

/** @param tenant the tenant's name. */
export function ruleState(event: Members, tenant: string): RuleState {
  const members = (name: string): Members => membersOf(event[name]) ?? {};
  const { user, client, connection, transaction, organization, authentication, session } = {
    user: members('user'),
    client: members('client'),
    connection: members('connection'),
    transaction: members('transaction'),
    organization: membersOf(event.organization),
    authentication: members('authentication'),
    session: members('session'),
  };
  const { user_agent: userAgent, ...request } = members('request');
  return {
    user,
    context: {
      tenant,
      clientID: client.client_id,
      clientName: client.name,
      clientMetadata: client.metadata ?? {},
      connection: connection.name,
      connectionID: connection.id,
      connectionStrategy: connection.strategy,
      connectionMetadata: connection.metadata ?? {},
      connectionOptions: {},
      protocol: transaction.protocol,
      stats: { loginsCount: members('stats').logins_count },
      // Other sessions and clients of the user are not revealed.
      sso: { with_auth0: false, with_dbconn: false, current_clients: [] },
      accessToken: {},
      idToken: {},
      samlConfiguration: { mappings: {} },
      request: { ...request, userAgent },
      authentication,
      authorization: { roles: members('authorization').roles ?? [] },
      sessionID: session.id,
      ...(organization && { organization }),
    },
  };
}

export const ruleAnswerSchema = z.object({
  user: z.record(z.string(), z.unknown()),
  context: z.record(z.string(), z.unknown()),
  updates: z.array(
    z.object({
      member: z.enum(['user_metadata', 'app_metadata']),
      metadata: z.record(z.string(), z.unknown()),
    }),
  ),
});

export type RuleUpdate = z.output<typeof ruleAnswerSchema>['updates'][number];

/** The methods of actions that write the same metadata. */
const METADATA = { user_metadata: 'user.setUserMetadata', app_metadata: 'user.setAppMetadata' };

/** Returns what rules asked for together. @param event the event that they were given. */
export function ruleCommands(
  { user, context }: RuleState,
  updates: readonly RuleUpdate[],
  event: Members,
): Command[] {
  const { requested_scopes: requestedScopes = [] } = (event.transaction ?? {}) as {
    requested_scopes?: string[];
  };
  const { email, email_verified: isVerified } = (event.user ?? {}) as {
    email?: string;
    email_verified?: unknown;
  };
  const { scope, ...accessToken } = membersOf(context.accessToken) ?? {};
  const claims = (method: string, members: Members) =>
    Object.entries(members).map(([claim, value]) => ({ method, args: [claim, value] }));
  // Unlike actions, rules accept a remembered browser by default.
  const { provider = 'any', allowRememberBrowser = true } = membersOf(context.multifactor) ?? {};
  const factor = membersOf(context.multifactor) && {
    method: 'multifactor.enable',
    args: [provider, { allowRememberBrowser }],
  };
  const redirect = membersOf(context.redirect);
  const { primaryUser, samlConfiguration } = context;
  return [
    ...updates.flatMap(({ member, metadata }) => claims(METADATA[member], metadata)),
    ...claims('idToken.setCustomClaim', membersOf(context.idToken) ?? {}),
    ...claims('accessToken.setCustomClaim', accessToken),
    ...scopeCommands(scope, requestedScopes),
    ...assertionCommands(membersOf(samlConfiguration) ?? {}, user, isVerified === true ? email : undefined),
    ...(primaryUser ? [{ method: 'authentication.setPrimaryUser', args: [primaryUser] }] : []),
    ...(factor === undefined ? [] : [factor]),
    ...(redirect === undefined ? [] : [{ method: 'redirect.sendUserTo', args: [redirect.url] }]),
  ];
}

/** `context.accessToken.scope` is the complete list of resulting scopes. */
function scopeCommands(scope: unknown, requestedScopes: readonly string[]): Command[] {
  if (!Array.isArray(scope)) return [];
  const scopes = scope.filter((one) => typeof one === 'string');
  const command = (method: string) => (one: string) => ({ method, args: [one] });
  return [
    ...scopes.filter((one) => !requestedScopes.includes(one)).map(command('accessToken.addScope')),
    ...requestedScopes.filter((one) => !scopes.includes(one)).map(command('accessToken.removeScope')),
  ];
}
