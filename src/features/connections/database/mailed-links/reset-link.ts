// Mails password reset links: a limited number per user, and without revealing who has an account.

import type { Deliveries } from '../../../../capabilities/delivery/deliveries.ts';
import { deliveryEvents } from '../../../../capabilities/delivery/delivery-declaration.ts';
import type { Messages } from '../../../../capabilities/delivery/delivery-messages.ts';
import type { Challenges } from '../../../../capabilities/protection/challenges.ts';
import type { RateLimits } from '../../../../capabilities/protection/rate-limit.ts';
import { askersOf, type Caller, type KnownCallers } from '../../../../capabilities/protection/rate-limit.ts';
import type { Languages } from '../../../../http/languages.ts';
import { normalizeEmail } from '../../../../records/base/email.ts';
import type { Client, Connection, Organization } from '../../../../records/collections.ts';
import { changesPasswords, offersReset } from '../../../../records/database-options.ts';
import type { Store, Write } from '../../../../store/contract.ts';
import type { Config } from '../../../../tenant/config.ts';
import type { Events } from '../../../../tenant/events.ts';
import type { User } from '../../../../users/user.ts';
import type { Users } from '../../../../users/users.ts';
import { databaseLimits } from '../base/database-declaration.ts';
import { type DatabaseRequest, databaseFailed } from '../custom/custom-run.ts';
import { type CustomLookupDependencies, findInCustomDatabase } from '../custom/custom-user.ts';

/** The purpose of a reset's challenge, and the path of its link. */
export const PASSWORD_RESET = { purpose: 'password_reset', path: '/u/reset-password' } as const;

interface ResetLinkDependencies extends CustomLookupDependencies {
  baseUrl: string;
  config: Config;
  users: Users;
  challenges: Challenges;
  callers: KnownCallers;
  messages: Messages;
  events: Events;
  deliveries: Pick<Deliveries, 'add'>;
  store: Pick<Store, 'batch'>;
  rateLimits: RateLimits;
}

interface ResetRequest {
  /** The user's e-mail address, phone number, or username, as typed. */
  email: string;
  connection: Connection;
  client: Client | undefined;
  organization: Organization | undefined;
  languages: Languages;
  caller: Caller;
}

// docs/understand/decisions/passwords-protection.md#a-password-reset-request-is-processed-after-the-response
/**
 * Mails a reset link to the user with that address, if there is one. This happens in the background, so that response and
 * time are the same for an unknown address. When the promise resolves the request is stored, and survives a restart.
 */
export type RequestReset = (request: ResetRequest) => Promise<void>;

/** A request as it is stored: with ids and names in place of records. */
interface StoredRequest extends Pick<ResetRequest, 'email' | 'languages' | 'caller'> {
  connection: string;
  client?: string;
  organization?: string;
}

/** Milliseconds between tries of a request. The store can fail, and so can a custom database. */
const PAUSES = [1_000, 5_000, 30_000, 120_000];

/** Returns the function that requests reset links; see {@link RequestReset}. */
export function resetRequests(deps: ResetLinkDependencies): RequestReset {
  const { config, deliveries, store } = deps;
  const lookUp = limitConcurrency(CONCURRENT_LOOKUPS);
  const prepare = deliveries.add<StoredRequest>({
    kind: 'password-reset',
    attempt: async ({ connection: name, client, organization, ...request }, { done }) => {
      const connection = await config.connection(name);
      if (connection === undefined) return;
      const resetRequest = {
        ...request,
        connection,
        client: client === undefined ? undefined : await config.client(client),
        organization: organization === undefined ? undefined : await config.organization(organization),
      };
      const find = (databaseRequest: DatabaseRequest) =>
        lookUp(name, () => findInCustomDatabase(deps, databaseRequest));
      await sendLink({ ...deps, find }, resetRequest, done);
    },
    isTemporary: () => true,
    onGiveUp: async ({ email, connection, caller: { ip } }) =>
      deps.events.record({
        type: deliveryEvents.fcpr,
        user_name: email,
        connection,
        ip,
        description: 'it failed',
      }),
    pauses: PAUSES,
    maxDuration: 30_000,
    concurrency: 8,
    capacity: 2_000,
  });
  return async ({ connection, client, organization, ...request }) => {
    const { write, start } = prepare({
      ...request,
      connection: connection.name,
      ...(client && { client: client.client_id }),
      ...(organization && { organization: organization.id }),
    });
    await store.batch([write]);
    start();
  };
}

/** Concurrent lookups in one custom database. Requests by strangers must not keep its scripts busy, as logins need them. */
const CONCURRENT_LOOKUPS = 2;

/** Returns a function that runs work under a key, and throws AuthError 503 while `most` of that key are running. */
function limitConcurrency(most: number) {
  const running = new Map<string, number>();
  const add = (key: string, change: number) => running.set(key, (running.get(key) ?? 0) + change);
  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    if ((running.get(key) ?? 0) >= most) throw databaseFailed();
    add(key, 1);
    return work().finally(() => add(key, -1));
  };
}

/** Mails the link of a request, or records why there is none. @param done the write that marks the request as done. */
async function sendLink(
  deps: ResetLinkDependencies & { find(databaseRequest: DatabaseRequest): Promise<User | undefined> },
  request: ResetRequest,
  done: Write,
): Promise<void> {
  const { connection, client, organization, languages, caller } = request;
  const { ip } = caller;
  const databaseRequest = {
    connection,
    identifier: request.email,
    clientId: client?.client_id,
    ip,
    organization,
  };
  const identity = offersReset(connection)
    ? await deps.users.identityInConnection(connection, request.email)
    : undefined;
  // Whether an address or a username was typed, the mail goes to the address of the account.
  const email = identity === undefined ? normalizeEmail(request.email) : identity.email;
  const user =
    email === undefined || !offersReset(connection)
      ? undefined
      : ((identity && (await deps.users.get(identity.user_id))) ?? (await deps.find(databaseRequest)));
  const details = {
    user_name: request.email,
    connection: connection.name,
    ip,
    ...(client && { client_id: client.client_id }),
  };
  if (email === undefined || user === undefined) {
    deps.events.record({ ...details, type: deliveryEvents.fcpr, description: noLinkReason(connection) });
    return;
  }
  const { enabled, urlLifetimeInSeconds: ttlSeconds } = deps.messages.template('reset_email');
  const recordRefusal = (description: string) =>
    deps.events.record({ ...details, type: deliveryEvents.fcpr, user_id: user.id, description });
  if (!enabled) return recordRefusal('reset_email is not enabled');
  // Limits the mails to a user, whatever address the requests come from. The caller does not see the limit.
  const account = `${connection.name}\n${user.id}`;
  if (!(await spendMailLimit(deps, account, user.id, caller))) return recordRefusal('too many mails');
  const { secret, ref, save } = deps.challenges.prepareTicket({
    purpose: PASSWORD_RESET.purpose,
    subject: user.id,
    // A newer link replaces only the same caller's. The first link that is used ends all others.
    askers: askersOf(caller),
    userId: user.id,
    ttlSeconds,
    data: {
      email,
      connection: connection.name,
      credentialVersion: await deps.users.credentialVersion(user.id),
      ...(client && { clientId: client.client_id }),
      ...(organization && { organization: organization.name }),
    },
  });
  const url = `${deps.baseUrl}${PASSWORD_RESET.path}?ticket=${secret}`;
  const notice = { to: email, application: client, connection, organization, user, url, languages, ip };
  const message = deps.messages.prepare('reset_email', notice, { ref, ttlSeconds });
  await save([message.write, done]);
  message.post();
}

function noLinkReason(connection: Connection): string {
  if (!changesPasswords(connection)) return 'there is no script change_password';
  return offersReset(connection) ? 'there is no such user' : 'the connection lets nobody ask for it';
}

// docs/understand/decisions/passwords-protection.md#mails-that-others-can-cause-are-limited-per-user
/** Counts a mail to a user. Strangers share one limit; each known caller has one of their own. @returns false beyond it. */
async function spendMailLimit(
  { rateLimits, callers }: ResetLinkDependencies,
  account: string,
  userId: string,
  caller: Caller,
): Promise<boolean> {
  const knownCaller = await callers.recognize(userId, caller);
  return rateLimits.spend(
    databaseLimits.changePasswordDestination,
    knownCaller === undefined ? account : `${account}\n${knownCaller.key}`,
  );
}
