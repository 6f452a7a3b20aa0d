// The strategies of passwordless connections: a user proves that they receive what is sent to an address.

import type { MessageKind } from '../../../capabilities/delivery/delivery-messages.ts';
import { isTicket } from '../../../capabilities/protection/challenges.ts';
import { callerKeys } from '../../../capabilities/protection/rate-limit.ts';
import { AuthError } from '../../../http/errors.ts';
import type { StrategyName } from '../../../records/connections/connections.ts';
import { passwordlessOptions } from '../../../records/connections/passwordless.ts';
import { NOBODY } from '../../../users/changes.ts';
import { expectedConnection } from '../../../users/connection-check.ts';
import { FIRST_VERSION } from '../../../users/login.ts';
import { userEvents } from '../../../users/users-declaration.ts';
import { type Proof, requireMayJoin, type StepStrategy, type Strategy, strategy } from '../strategy.ts';

export const PURPOSE = 'passwordless';

/** Returns the subject of a passwordless challenge: one application's logins with one address. */
export function subjectOf(clientId: string, connection: { name: string }, address: string): string {
  return `${connection.name}\n${address}\n${clientId}`;
}

interface PasswordlessTraits {
  name: StrategyName;
  kind: 'email' | 'phone_number';
  amr: readonly string[];
  /** The message key of the link to its pages, and the icon beside it. */
  text: string;
  icon: string;
  message: MessageKind;
  /** Whether a link may be sent in place of a code. */
  sendsLinks: boolean;
  /** Returns the form in which an address is stored and sent to; undefined if it is not valid. */
  normalize(text: string): string | undefined;
  invalid(text: string): AuthError;
  /** Returns the response of /passwordless/start. @param language of the request's `X-Request-Language`, if any. */
  startResponse(address: string, language: string | undefined): object;
  /** The message for a wrong code. SDKs compare it. */
  wrong: string;
}

/** A passwordless strategy; its credentials are a code, or the secret of a link. */
export type PasswordlessStrategy = StepStrategy<string> &
  Omit<PasswordlessTraits, 'wrong'> & { wrong(): AuthError };

export function isPasswordless(strategy: Strategy): strategy is PasswordlessStrategy {
  return 'sendsLinks' in strategy;
}

/**
 * Returns a passwordless strategy. The identifier of a proof is the normalized address. The first login creates the user, with
 * the address verified. A code logs in exactly once, even if it is used several times at once.
 */
export function passwordlessStrategy({
  wrong: description,
  ...traits
}: PasswordlessTraits): PasswordlessStrategy {
  const { name, kind } = traits;
  const wrong = () => new AuthError(403, 'invalid_grant', description);
  const step = (connection: { name: string }) => `passwordless/${connection.name}`;
  return strategy(
    { ...traits, page: 'step', step, wrong },
    {
      proofKind: 'code',
      // Wrong secrets of links are not counted: a link cannot be guessed, and the right one must stay usable.
      isGuessable: (secret) => !isTicket(secret),
      // An address in its normal form is the only identifier of an account.
      find: async ({ users }, { connection, identifier: address }: Proof<string>) => ({
        userId: await users.idByAddress({ connection: connection.name, kind, address }),
        accounts: [],
      }),
      read: async ({ users, challenges }, { clientId, connection, identifier, credentials }, { userId }) => {
        const code = challenges.prepare(PURPOSE, subjectOf(clientId, connection, identifier), credentials);
        const [user, version] = await Promise.all([
          users.get(userId ?? NOBODY),
          userId === undefined ? FIRST_VERSION : users.credentialVersion(userId),
        ]);
        return { user, version, code };
      },
      verify: (_deps, { proof, read: { code }, callerKey, isLogin }) =>
        code({ spend: isLogin, askers: callerKeys(proof.caller), callerKey }),
      userOf: async ({ users, events }, proof, { user: readUser, version }) => {
        const { clientId, connection, identifier: address, caller, asker } = proof;
        const { disable_signup } = passwordlessOptions(connection);
        // A user who was removed since the code was sent is not created again if sign-up is disabled.
        const identity = { ...expectedConnection(connection), provider: name, kind, address };
        const mayCreate = !disable_signup;
        if (readUser === undefined && mayCreate) requireMayJoin(proof);
        const result = await users.whoProved({ ...identity, mayCreate, lookup: { user: readUser }, asker });
        if (result === undefined) return undefined;
        const { user, isNew } = result;
        const details = {
          client_id: clientId,
          connection: connection.name,
          user_name: address,
          ip: caller.ip,
        };
        if (isNew) events.record({ ...details, type: userEvents.ss, user_id: user.id });
        return { userId: user.id, credentialVersion: version };
      },
      failure: () => ({ type: userEvents.fp }),
      wrong,
    },
  );
}
