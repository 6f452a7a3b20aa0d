// Choosing and starting a challenge (spec "Multi-factor authentication").
import { AuthError } from '../http/errors.ts';
import type { Authenticator, Kind } from './authenticators.ts';
import { type EnrollDependencies, type EnrollRequest, sendCode } from './enroll.ts';
import { activeAuthenticators } from './second-factor.ts';

export type ChallengeType = 'otp' | 'oob';

/** A challenge as the application is told of it. */
export interface StartedChallenge {
  authenticator: Authenticator;
  type: ChallengeType;
  oobCode?: string;
  /** Whether a code has to be typed. */
  prompt: boolean;
  /** What a device shows, to be compared. */
  number?: string;
}

const TYPES: Partial<Record<Kind, ChallengeType>> = { otp: 'otp', sms: 'oob', email: 'oob', push: 'oob' };

/** Where nothing is asked for: what cannot be phished or read on the way comes first. */
const PREFERENCE: Kind[] = ['push', 'otp', 'sms', 'email'];

/**
 * Starts a challenge of a type that the application takes, with an authenticator that the user has.
 * @param wanted.types what the application takes; all where undefined.
 * @throws AuthError 401 `association_required`, `unsupported_challenge_type`; 400 `invalid_authenticator`;
 * 429 `too_many_requests`.
 */
export async function startChallenge(
  deps: EnrollDependencies,
  request: EnrollRequest,
  wanted: { types?: readonly string[] | undefined; authenticatorId?: string | undefined },
): Promise<StartedChallenge> {
  const authenticator = await choose(deps, request, wanted);
  const { user, clientId, ip } = request;
  deps.events.record({ type: 'gd_start_auth', user_id: user.id, client_id: clientId, ip });
  if (authenticator.kind === 'otp') return { authenticator, type: 'otp', prompt: true };
  if (authenticator.kind === 'push') {
    // Somebody who has the password must not ask until the user is tired of denying.
    if (!(await deps.limits.spend('mfaPush', user.id)))
      throw new AuthError(
        429,
        'too_many_requests',
        'Too many requests to this user’s devices. Try again later.',
      );
    const { oobCode, number } = await deps.oob.issueDevice({ authenticator, clientId, ip });
    deps.webPush.wake(authenticator);
    return { authenticator, type: 'oob', oobCode, number, prompt: false };
  }
  return { authenticator, type: 'oob', oobCode: await sendCode(deps, request, authenticator), prompt: true };
}

async function choose(
  deps: EnrollDependencies,
  { user }: EnrollRequest,
  { types, authenticatorId }: { types?: readonly string[] | undefined; authenticatorId?: string | undefined },
): Promise<Authenticator> {
  const active = (await activeAuthenticators(deps, user)).filter(({ kind }) => TYPES[kind] !== undefined);
  if (active.length === 0) {
    throw new AuthError(401, 'association_required', 'The user must enrol an authenticator first.');
  }
  const named = authenticatorId === undefined ? active : active.filter(({ id }) => id === authenticatorId);
  if (named.length === 0)
    throw new AuthError(400, 'invalid_authenticator', 'The user has no such authenticator.');
  const fitting = named.filter(({ kind }) => types === undefined || types.includes(TYPES[kind] ?? ''));
  const [chosen] = fitting.sort((a, b) => PREFERENCE.indexOf(a.kind) - PREFERENCE.indexOf(b.kind));
  if (chosen !== undefined) return chosen;
  throw new AuthError(
    401,
    'unsupported_challenge_type',
    `User does not have any enrolled authenticator with the supported challenge type (${(types ?? []).join(' ')})`,
  );
}
