// Chooses an authenticator and starts its challenge (docs/reference/wire/mfa.md).
import { AuthError } from '../../http/errors.ts';
import type { Authenticator } from './authenticators.ts';
import type { FactorRequest } from './claimant.ts';
import type { Challenge, Factor, FactorDependencies } from './factor.ts';
import { factorEvents } from './factors-declaration.ts';
import { activeAuthenticators, factorOf } from './policy.ts';

/** A challenge, with the authenticator and factor that were chosen. Nothing is sent where the user has the code. */
interface StartedChallenge extends Challenge {
  authenticator: Authenticator;
  factor: Factor;
}

/** What an application or a page asks for. */
interface AuthenticatorSelection {
  /** The `challenge_type`s that the application accepts; undefined for all. */
  types?: readonly string[] | undefined;
  authenticatorId?: string | undefined;
}

/**
 * Starts a challenge with an authenticator of the user, of a type that the application accepts.
 * @throws AuthError 401 `association_required`, `unsupported_challenge_type`; 400 `invalid_authenticator`;
 *   429 `too_many_requests`.
 */
export async function startChallenge(
  deps: FactorDependencies,
  request: FactorRequest,
  selection: AuthenticatorSelection,
): Promise<StartedChallenge> {
  const { authenticator, factor } = await choose(deps, request, selection);
  const { user, clientId, ip } = request;
  deps.events.record({ type: factorEvents.gd_start_auth, user_id: user.id, client_id: clientId, ip });
  return { authenticator, factor, ...(await factor.challenge?.(deps, request, authenticator)) };
}

async function choose(
  deps: FactorDependencies,
  { user }: FactorRequest,
  { types, authenticatorId }: AuthenticatorSelection,
): Promise<{ authenticator: Authenticator; factor: Factor }> {
  const all = await activeAuthenticators(deps, user);
  if (all.length === 0) {
    throw new AuthError(401, 'association_required', 'The user must enrol an authenticator first.');
  }
  const active = all.flatMap((authenticator) => {
    const factor = factorOf(deps, authenticator);
    return factor !== undefined && isGivenByGrant(factor) ? [{ authenticator, factor }] : [];
  });
  // A recovery code is for a user who has lost the others, so it is chosen only by its id.
  const candidates = active.filter(({ authenticator, factor }) =>
    authenticatorId === undefined ? isChallenged(factor) : authenticator.id === authenticatorId,
  );
  const isOwn = all.some(({ id }) => id === authenticatorId);
  if (authenticatorId !== undefined && !isOwn)
    throw new AuthError(
      400,
      'invalid_authenticator',
      'The user has no such authenticator, or has not confirmed it.',
    );
  const accepted = candidates.filter(
    ({ factor }) => types === undefined || types.includes(factor.authenticatorType),
  );
  const [chosen] = accepted.sort((a, b) => b.factor.strength - a.factor.strength);
  if (chosen !== undefined) return chosen;
  throw new AuthError(
    401,
    'unsupported_challenge_type',
    `User does not have any enrolled authenticator with the supported challenge type (${(types ?? []).join(' ')})`,
  );
}

const isChallenged = (factor: Factor) => factor.challenge !== undefined;

/** Whether applications can give the factor; others are given at the hosted pages only. */
const isGivenByGrant = (factor: Factor) => isChallenged(factor) || factor.grant !== undefined;
