// The bridge of passwords: users of a connection whose password is not here are asked for at the old tenant when they log in,
// and are here from then on.
// docs/understand/decisions/moving.md#the-old-tenant-verifies-the-first-password
import { z } from 'zod';
import type { RateLimits } from '../../capabilities/protection/rate-limit.ts';
import { lookupEmail } from '../../records/base/email.ts';
import type { Frozen } from '../../records/base/record.ts';
import { SIGNING_ALGS } from '../../records/base/signing-algs.ts';
import type { Connection } from '../../records/collections.ts';
import { DATABASE } from '../../records/connections/connections.ts';
import { isOpen, type MoveRecord } from '../../records/tenant/move.ts';
import { CONSOLE_DIRECTORY } from '../../records/users/administrators.ts';
import { LEFT_BEHIND } from '../../records/users/authenticators.ts';
import { SECOND_FACTORS } from '../../records/users/second-factors.ts';
import type { Clock } from '../../runtime/clock.ts';
import { jsonOf } from '../../runtime/json.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { Administrators } from '../../users/administrators.ts';
import { type DatabaseUser, databaseUser } from '../../users/database-user.ts';
import type { ImportedFactor } from '../../users/imported-factors.ts';
import { isFactor } from '../../users/left-factors.ts';
import { wasRemovedSince } from '../../users/removed-users.ts';
import { userEvents } from '../../users/users-declaration.ts';
import { type DatabaseRequest, databaseFailed } from '../connections/database/custom/custom-run.ts';
import type { OldTenantUsers, WrongPassword } from '../connections/database/custom/database-custom.ts';
import type { OpenIdProviders } from '../connections/oidc/providers.ts';
import type { CountMove } from './move-counts.ts';
import { moveEvents, moveLimits } from './move-declaration.ts';
import {
  identityOf,
  type OldAuthenticationMethod,
  type OldDirectory,
  type OldIdentity,
  type OldUser,
} from './old-directory.ts';
import { codeIn, OldTenantFault, type SendToOldTenant } from './old-requests.ts';
import { verifyOldIdToken } from './old-tokens.ts';

interface PasswordBridgeDependencies {
  store: Store;
  config: Pick<Config, 'move' | 'settings'>;
  events: Pick<Events, 'record'>;
  rateLimits: Pick<RateLimits, 'spend'>;
  administrators: Pick<Administrators, 'withEmail'>;
  send: SendToOldTenant;
  directory: OldDirectory;
  openId: Pick<OpenIdProviders, 'keysOf'>;
  countMove: CountMove;
  random: Random;
  wallClock: Clock;
}

type Move = Frozen<MoveRecord>;

export function oldPasswords(deps: PasswordBridgeDependencies): OldTenantUsers {
  const { events, countMove } = deps;
  const failed = (request: DatabaseRequest, reason: string) => {
    countMove('passwords', 'failed', request.connection.id);
    events.record({ ...aboutRequest(request), type: moveEvents.old_password_failed, description: reason });
  };
  return {
    isAsked: async (connection) => (await moveFor(deps, connection)) !== undefined,
    login: async (request, password) => {
      try {
        const answer = (await isOfAdministrator(deps, request))
          ? await loginInVain(deps, request)
          : await login(deps, request, password);
        if ('wrong' in answer) countMove('passwords', 'refused', request.connection.id);
        else if (answer.refusal !== undefined) throw new OldTenantFault(answer.refusal);
        return answer;
      } catch (thrown) {
        failed(request, reasonOf(thrown));
        return 'failed';
      }
    },
    find: async (request) => {
      try {
        const move = await requireMove(deps, request.connection);
        const found = await deps.directory.find(move, request.connection.name, request.identifier);
        if (found === undefined || (await wasRemoved(deps, move, request, found.user))) return undefined;
        return await userFor(deps, move, request, { ...found, hasFactor: false });
      } catch (thrown) {
        failed(request, reasonOf(thrown));
        throw databaseFailed();
      }
    },
    recordRefusal: failed,
    recordMove: (request, userId) => {
      countMove('passwords', 'moved', request.connection.id);
      events.record({ ...aboutRequest(request), type: moveEvents.moved_password, user_id: userId });
    },
  };
}

function aboutRequest({ connection, identifier, clientId, ip }: DatabaseRequest) {
  return {
    connection: connection.name,
    user_name: identifier,
    ...(clientId !== undefined && { client_id: clientId }),
    ...(ip !== undefined && { ip }),
  };
}

const reasonOf = (thrown: unknown) =>
  (thrown instanceof Error ? thrown.message : String(thrown)).slice(0, 500);

/** Returns the open move whose passwords a connection accepts now; undefined if there is none. */
async function moveFor(
  { config, wallClock }: Pick<PasswordBridgeDependencies, 'config' | 'wallClock'>,
  { id, name, strategy }: Connection,
): Promise<Move | undefined> {
  // Administrators are of no old tenant.
  if (strategy !== DATABASE || name === CONSOLE_DIRECTORY) return undefined;
  const move = await config.move();
  return move !== undefined && isOpen(move, move.passwords[id], wallClock()) ? move : undefined;
}

// docs/understand/decisions/moving.md#a-password-that-may-be-an-administrators-does-not-leave
/** Returns whether an address is one that an administrator of this server logs in with. */
async function isOfAdministrator(
  { administrators }: Pick<PasswordBridgeDependencies, 'administrators'>,
  { identifier }: DatabaseRequest,
): Promise<boolean> {
  const email = lookupEmail(identifier);
  return email !== undefined && (await administrators.withEmail(email)).length > 0;
}

/** Asks for a password that nobody has: the answer takes as long as to a wrong one, and tells no stranger who administers. */
async function loginInVain(
  deps: PasswordBridgeDependencies,
  request: DatabaseRequest,
): Promise<WrongPassword> {
  const password = deps.random(DECOY_BYTES).toString('base64url');
  await askPassword(deps, await requireMove(deps, request.connection), request, password);
  return OF_ADMINISTRATOR;
}

const DECOY_BYTES = 12;

const OF_ADMINISTRATOR: WrongPassword = {
  wrong: {
    type: userEvents.fp,
    description:
      'The password of an administrator of this server is not sent to the old tenant: it got another.',
  },
};

/** Judged again right before the old tenant is asked, and takes from what it may be asked in all. @throws OldTenantFault */
async function requireMove(deps: PasswordBridgeDependencies, connection: Connection): Promise<Move> {
  if (!(await deps.rateLimits.spend(moveLimits.oldPasswords, '')))
    throw new OldTenantFault('it was asked too often by all users together');
  const move = await moveFor(deps, connection);
  if (move === undefined) throw new OldTenantFault('its passwords are not accepted any more');
  return move;
}

/** @throws Error if the old tenant could not be asked, or its answer is not accepted. */
async function login(
  deps: PasswordBridgeDependencies,
  request: DatabaseRequest,
  password: string,
): Promise<DatabaseUser | WrongPassword> {
  const move = await requireMove(deps, request.connection);
  const answer = await askPassword(deps, move, request, password);
  if ('wrong' in answer) return answer;
  const found = await userOf(deps, move, request, answer.userId);
  if (await wasRemoved(deps, move, request, found.user))
    throw new OldTenantFault('its user was removed here');
  return userFor(deps, move, request, { ...found, hasFactor: answer.userId === undefined });
}

// The password grant there.

const tokenAnswer = z.looseObject({
  id_token: z
    .string()
    .min(1)
    .max(32 * 1024),
});

/**
 * Asks the old tenant whether a password is right.
 * @returns the id of its user; without it if the user has to give a second factor there, which is only asked for after the
 *   right password.
 */
async function askPassword(
  deps: PasswordBridgeDependencies,
  move: Move,
  { connection, identifier, ip }: DatabaseRequest,
  password: string,
): Promise<{ userId: string | undefined } | WrongPassword> {
  const { client_id, client_secret } = move.management;
  const response = await deps.send(move, '/oauth/token', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      // The old tenant counts failed attempts by the user's address, and not all by ours.
      ...(ip !== undefined && { 'auth0-forwarded-for': ip }),
    },
    body: JSON.stringify({
      grant_type: `http://${deps.config.settings().vendor_host}/oauth/grant-type/password-realm`,
      client_id,
      client_secret,
      username: identifier.trim(),
      password,
      realm: connection.name,
      scope: 'openid',
    }),
  });
  const body = jsonOf(await response.text());
  if (response.status === 200) {
    const tokens = tokenAnswer.safeParse(body);
    if (!tokens.success) throw new OldTenantFault('its token endpoint answered without an ID token');
    const expected = { clientId: client_id, algorithms: SIGNING_ALGS };
    const { sub } = await verifyOldIdToken(deps, move, tokens.data.id_token, expected);
    return { userId: sub };
  }
  const { error } = Object(body) as { error?: unknown };
  if (error === 'mfa_required') return { userId: undefined };
  const refusal = WRONG.get(error);
  if (refusal === undefined || response.status >= 500 || response.status === 429)
    throw new OldTenantFault(`its token endpoint answered ${response.status}${codeIn(body)}`);
  return { wrong: { type: userEvents.fp, description: refusal } };
}

/** The errors of the grant that are about the user, and what the log says of them. */
const WRONG: ReadonlyMap<unknown, string> = new Map([
  ['invalid_grant', 'The old tenant knows no such user and password.'],
  ['invalid_user_password', 'The old tenant knows no such user and password.'],
  ['unauthorized', 'The old tenant does not let the user in.'],
  ['access_denied', 'The old tenant does not let the user in.'],
  ['password_leaked', 'The old tenant does not accept the password: it was leaked.'],
]);

/** Returns the user whose password was right. @throws OldTenantFault if it is not the one who was asked for. */
async function userOf(
  { directory }: PasswordBridgeDependencies,
  move: Move,
  { connection, identifier }: DatabaseRequest,
  userId: string | undefined,
): Promise<{ user: OldUser; identity: OldIdentity }> {
  if (userId === undefined) {
    const found = await directory.find(move, connection.name, identifier);
    if (found === undefined) throw new OldTenantFault('its Management API does not find the user');
    return found;
  }
  const user = await directory.get(move, userId);
  if (user === undefined) throw new OldTenantFault('its Management API does not find the user');
  const identity = identityOf(user, connection.name, identifier);
  if (identity === undefined)
    throw new OldTenantFault('it let another user in than the one who was asked for');
  return { user, identity };
}

/** Returns whether a user was removed here since the passwords of their connection are asked for. */
async function wasRemoved(
  { store }: Pick<PasswordBridgeDependencies, 'store'>,
  move: Move,
  { connection }: DatabaseRequest,
  { user_id }: OldUser,
): Promise<boolean> {
  return wasRemovedSince(store, user_id, move.passwords[connection.id]?.opened_at ?? move.opened_at);
}

// What a user of the old tenant is here.

/** @param found `hasFactor`: the old tenant has asked for a second factor. */
async function userFor(
  deps: PasswordBridgeDependencies,
  move: Move,
  { connection }: DatabaseRequest,
  { user, identity, hasFactor }: { user: OldUser; identity: OldIdentity; hasFactor: boolean },
): Promise<DatabaseUser> {
  const isPrimary = user.user_id === `${DATABASE}|${identity.user_id}`;
  const { identities: _, ...root } = user;
  const { user_metadata, app_metadata } = root;
  const profile = isPrimary ? root : { ...identity.profileData, user_metadata, app_metadata };
  const needsFactor = hasFactor || (user.multifactor ?? []).length > 0;
  const factors = needsFactor ? await factorsThatMove(deps.directory, deps.config, move, user.user_id) : [];
  const read = databaseUser({
    ...profile,
    user_id: identity.user_id,
    access_token: undefined,
    refresh_token: undefined,
    mfa_factors: factors,
  });
  if (typeof read === 'string') throw new OldTenantFault(`its user is not accepted: ${read}`);
  const refusal =
    user.blocked === true
      ? 'the user is blocked at the old tenant'
      : needsFactor && factors.length === 0
        ? await missingFactor(deps, move, connection, user)
        : undefined;
  return { ...read, refusal, record: user, ...(hasFactor && { multifactor: ['guardian'] }) };
}

// docs/understand/decisions/moving.md#a-user-whose-second-factor-does-not-move-is-not-let-in-by-the-password-alone
/**
 * Returns why a user who has a second factor at the old tenant that cannot be asked for here is not let in; undefined if they
 * have one here, or the operator lets them enrol one.
 */
async function missingFactor(
  { store }: PasswordBridgeDependencies,
  move: Move,
  { id, name }: Connection,
  user: OldUser,
): Promise<string | undefined> {
  if (move.passwords[id]?.lets_enrol === true) return undefined;
  const here = await store.collection('authenticators').findBy('user', user.user_id);
  if (here.some(isFactor)) return undefined;
  // Support has removed the mark that `gatehouse move in` had left, so that the user may enrol one.
  const present = await store.collection('users').get(user.user_id);
  if (present?.factor_left_behind === true && !here.some(({ kind }) => kind === LEFT_BEHIND))
    return undefined;
  return `the user has a second factor at the old tenant and none here: see gatehouse move trickle ${name} --enrol`;
}

/** Returns those second factors of a user that can be asked for here, too; the keys of the others do not leave the old tenant. */
async function factorsThatMove(
  directory: Pick<OldDirectory, 'authenticationMethods'>,
  config: Pick<Config, 'settings'>,
  move: Frozen<MoveRecord>,
  userId: string,
): Promise<ImportedFactor[]> {
  const isOn = (name: string) =>
    config.settings().guardianFactors.some((one) => one.name === name && one.enabled);
  const methods = await directory.authenticationMethods(move, userId);
  const confirmed = methods.filter((one) => one.confirmed !== false);
  const found = confirmed.flatMap((one) => factorIn(one) ?? []);
  return found.filter((one) => isOn('phone' in one ? SECOND_FACTORS.sms.name : SECOND_FACTORS.email.name));
}

function factorIn({ type, phone_number: phone, email }: OldAuthenticationMethod): ImportedFactor | undefined {
  if (type === 'phone' && phone != null && /^\+[0-9]{1,15}$/.test(phone)) return { phone: { value: phone } };
  return type === 'email' && email != null ? { email: { value: email } } : undefined;
}
