// The strategies of passwordless connections: whoever reads what is sent to an address is its user.

import type { MessageKind } from '../../delivery/messages.ts';
import { AuthError } from '../../http/errors.ts';
import { callerKeys } from '../../protection/callers.ts';
import { isTicket } from '../../protection/challenges.ts';
import type { StrategyName } from '../../records/connections.ts';
import { passwordlessOptions } from '../../records/passwordless.ts';
import { NOBODY } from '../../users/identities.ts';
import { FIRST_VERSION } from '../../users/login.ts';
import { type Proof, type StepStrategy, type Strategy, strategy } from '../strategy.ts';

/** The challenge of a passwordless login. */
export const PURPOSE = 'passwordless';

/** What a passwordless challenge is about: one application's login with one address. */
export function subjectOf(clientId: string, connection: { name: string }, address: string): string {
  return `${connection.name}\n${address}\n${clientId}`;
}

/** How a passwordless strategy reaches its users. */
interface Reach {
  name: StrategyName;
  /** The kind of address, and the field that has it in requests. */
  kind: 'email' | 'phone_number';
  amr: readonly string[];
  /** The message key of the way to its pages, and the icon beside it. */
  text: string;
  icon: string;
  /** What is sent. */
  message: MessageKind;
  /** Whether a link may be sent in place of a code. */
  sendsLinks: boolean;
  /** The form in which an address is kept and sent to; undefined when it is none. */
  normalize(text: string): string | undefined;
  /** The answer for an address that is none, where one is asked to send to it. */
  invalid(given: string): AuthError;
  /** What is answered of an address that was sent to. @param language that the request asked for, if any */
  sent(address: string, language: string | undefined): object;
  /** The answer for a wrong code; SDKs compare it. */
  wrong: string;
}

/** A passwordless strategy; its credentials are a code, or the secret of a link. */
export type PasswordlessStrategy = StepStrategy<string> & Omit<Reach, 'wrong'> & { wrong(): AuthError };

/** Whether a strategy is one of these. */
export function isPasswordless(strategy: Strategy): strategy is PasswordlessStrategy {
  return 'sendsLinks' in strategy;
}

/**
 * Makes a passwordless strategy. A proof's identifier is the address, normalised. Its user is made at the first login,
 * with the address verified; of any number of racers with one code exactly one logs in.
 */
export function passwordlessStrategy({ wrong: description, ...reach }: Reach): PasswordlessStrategy {
  const { name, kind } = reach;
  const wrong = () => new AuthError(403, 'invalid_grant', description);
  const step = (connection: { name: string }) => `passwordless/${connection.name}`;
  return strategy(
    { ...reach, page: 'step', step, wrong },
    {
      what: 'code',
      // No number of wrong links stands in the way of the right one.
      isGuessable: (secret) => !isTicket(secret),
      find: ({ users }, { connection, identifier: address }: Proof<string>) =>
        users.idByAddress({ connection: connection.name, kind, address }),
      read: async ({ users, challenges }, { clientId, connection, identifier, credentials }, userId) => {
        const code = challenges.prepare(PURPOSE, subjectOf(clientId, connection, identifier), credentials);
        const [user, version] = await Promise.all([
          users.get(userId ?? NOBODY),
          userId === undefined ? FIRST_VERSION : users.credentialVersion(userId),
        ]);
        return { user, version, code };
      },
      verify: (_deps, { proof, read: { code }, room, use }) =>
        code({ spend: use, askers: callerKeys(proof.caller), known: room }),
      userOf: async ({ users, events }, proof, { user: seen, version }) => {
        const { clientId, connection, identifier: address, caller, asker } = proof;
        const { disable_signup } = passwordlessOptions(connection);
        // A user who was removed since the code was sent does not come back where nobody may sign up.
        const identity = { connection: connection.name, provider: name, kind, address };
        const mayCreate = !disable_signup;
        const proved = await users.whoProved({ ...identity, mayCreate, seen: { user: seen }, asker });
        if (proved === undefined) return undefined;
        const { user, isNew } = proved;
        const at = { client_id: clientId, connection: connection.name, user_name: address, ip: caller.ip };
        if (isNew) events.record({ ...at, type: 'ss', user_id: user.id });
        return { userId: user.id, credentialVersion: version };
      },
      failure: () => ({ type: 'fp' }),
      wrong,
    },
  );
}
