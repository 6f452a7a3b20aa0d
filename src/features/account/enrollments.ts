// Enrolment of second factors by a logged-in user: begun, then verified within ten minutes by the login that began
// it. An `auth_session` can be verified once.

import { AuthError } from '../../http/errors.ts';
import { type MethodType, methodTypeOf, SECOND_FACTORS } from '../../records/second-factors.ts';
import { enroll } from '../factors/enroll.ts';
import type { Factor, StartedEnrollment } from '../factors/factor.ts';
import { activeAuthenticators, enabledFactors } from '../factors/policy.ts';
import { prepareRecoveryCode, recoveryCodeId, saveRecoveryCode } from '../factors/recovery/codes.ts';
import { type Actor, factorRequestOf, requireLoginFor } from './actor.ts';
import { invalidField } from './errors.ts';
import { notifyOfMethod } from './method-notices.ts';
import { type MethodDependencies, noMethod } from './methods.ts';
import { authenticatorView, type MethodView } from './views.ts';

export type EnrollmentDependencies = MethodDependencies;

/** The second factor to enrol. */
interface NewFactor {
  type: MethodType;
  /** The address or number that codes are sent to, if they are. */
  address?: string | undefined;
}

/** An enrolment that was begun. */
interface StartedFactor {
  id: string;
  authSession: string;
  type: MethodType;
  /** The URI of the QR code, for an authenticator app or a device. */
  barcodeUri?: string | undefined;
  /** The secret of an authenticator app, to be typed. */
  secret?: string | undefined;
  /** For `navigator.credentials.create`, for WebAuthn. */
  options?: object | undefined;
  /** With the first authenticator, or when a recovery code was asked for. */
  recoveryCode?: string | undefined;
}

const PURPOSE = 'account_enrollment';
const ENROLLMENT_SECONDS = 600;

/** What is stored with an `auth_session`. */
interface StoredEnrollment {
  /** The login that began the enrolment. */
  login: string;
  clientId: string;
  /** The id of the authenticator that was begun. */
  id: string;
  type: MethodType;
  oobCode?: string;
  /** The hash of a new recovery code. */
  codeHash?: string;
}

/** Returns the second factors that are on, by their published types. */
export function factorsOf(deps: Pick<MethodDependencies, 'config' | 'factors'>): Map<MethodType, Factor> {
  return new Map(enabledFactors(deps).map((factor) => [methodTypeOf(factor.kind), factor]));
}

/**
 * Begins to enrol a second factor.
 * @throws AuthError 401 when the login is not fresh; 400 when the factor is off or cannot be enrolled by the API,
 *   or the address is invalid; 429; 503 when a code cannot be sent.
 */
export async function startFactor(
  deps: EnrollmentDependencies,
  actor: Actor,
  { type, address }: NewFactor,
): Promise<StartedFactor> {
  await requireLoginFor(deps, actor, 'factor');
  const factor = factorsOf(deps).get(type);
  if (factor === undefined) throw notOffered(type);
  if (factor.recovers === true) return startRecoveryCode(deps, actor, type);
  const { requestedAs = [], creationOptions } = factor.enroll ?? {};
  if (requestedAs.length === 0 && creationOptions === undefined) throw notOffered(type);
  const request = factorRequestOf(actor);
  const started: StartedEnrollment = await enroll(deps, request, { factor, address });
  const { authenticator, barcodeUri, secret, recoveryCode } = started;
  const context = { authenticatorId: authenticator.id, login: actor.login.id, at: actor.origin };
  const creation = await creationOptions?.(deps, request, context);
  const { oobCode } = creation ?? started;
  const enrollment = { id: authenticator.id, type, ...(oobCode !== undefined && { oobCode }) };
  const authSession = await storeEnrollment(deps, actor, enrollment);
  return { ...enrollment, authSession, barcodeUri, secret, recoveryCode, options: creation?.options };
}

function notOffered(type: MethodType): AuthError {
  return invalidField('type', `The factor ${type} is not enabled.`);
}

/** Makes a recovery code for a user with a second factor. It replaces the user's present one when it is verified. */
async function startRecoveryCode(
  deps: EnrollmentDependencies,
  actor: Actor,
  type: MethodType,
): Promise<StartedFactor> {
  if ((await activeAuthenticators(deps, actor.user)).length === 0)
    throw invalidField('type', 'A recovery code takes a factor that it recovers.');
  const { code, codeHash } = prepareRecoveryCode(deps.random);
  const enrollment = { id: `${SECOND_FACTORS['recovery-code'].prefix}|new`, type, codeHash };
  return { ...enrollment, authSession: await storeEnrollment(deps, actor, enrollment), recoveryCode: code };
}

async function storeEnrollment(
  deps: EnrollmentDependencies,
  { user, clientId, login }: Actor,
  started: Omit<StoredEnrollment, 'login' | 'clientId'>,
): Promise<string> {
  const enrollment: StoredEnrollment = { ...started, login: login.id, clientId };
  const { secret } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    // One enrolment of a type for each login. The next one replaces it.
    subject: `${user.id}\n${login.id}\n${started.type}`,
    userId: user.id,
    ttlSeconds: ENROLLMENT_SECONDS,
    data: { enrollment },
  });
  return secret;
}

/** The proof that the user can use the new factor. */
interface FactorProof {
  id: string;
  authSession: string;
  code: string;
  /** The result of `navigator.credentials.create`, in the format of `toJSON`. */
  response?: object | undefined;
}

/**
 * Verifies a second factor by its first use. Of several concurrent calls one succeeds.
 * @throws AuthError 401 as {@link requireLoginFor}; 400 `invalid_grant` when the code is wrong or the `auth_session`
 *   is unknown, used, expired or another login's; 400 `authorization_pending` while a device has not answered; 429.
 */
export async function verifyFactor(
  deps: EnrollmentDependencies,
  actor: Actor,
  { id, authSession, code, response }: FactorProof,
): Promise<MethodView> {
  await requireLoginFor(deps, actor, 'completion');
  const enrollment = await enrollmentOf(deps, actor, authSession);
  if (enrollment === undefined || enrollment.id !== id) throw unknownSession();
  const { type, codeHash } = enrollment;
  const authenticatorId =
    codeHash === undefined
      ? await confirmByUse(deps, actor, { ...enrollment, authSession, code, response })
      : await replaceRecoveryCode(deps, actor, authSession, codeHash);
  // The confirmation of any other factor has sent the mail already.
  if (codeHash !== undefined) await notifyOfMethod(deps, actor, 'method_added', type);
  const authenticator = await deps.authenticators.get(authenticatorId);
  if (authenticator === undefined) throw noMethod();
  return authenticatorView(authenticator);
}

async function enrollmentOf(
  { challenges }: EnrollmentDependencies,
  { user, clientId, login }: Actor,
  authSession: string,
): Promise<StoredEnrollment | undefined> {
  const verifiedChallenge = await challenges.peekTicket(PURPOSE, authSession);
  const enrollment = verifiedChallenge?.data.enrollment as StoredEnrollment | undefined;
  const isTheirs =
    verifiedChallenge?.userId === user.id &&
    enrollment?.login === login.id &&
    enrollment.clientId === clientId;
  return isTheirs ? enrollment : undefined;
}

/** Returns the same error for every unusable `auth_session`. */
export function unknownSession(): AuthError {
  return new AuthError(400, 'invalid_grant', 'Invalid or expired auth_session.');
}

/** Confirms an authenticator by its first use. @returns its id. */
async function confirmByUse(
  deps: EnrollmentDependencies,
  actor: Actor,
  { id, type, authSession, oobCode = '', code: typed, response }: StoredEnrollment & Omit<FactorProof, 'id'>,
): Promise<string> {
  const factor = factorsOf(deps).get(type);
  if (factor === undefined) throw notOffered(type);
  const isCreatedInBrowser = factor.enroll?.creationOptions !== undefined;
  if (isCreatedInBrowser && response === undefined) throw invalidField('authn_response', 'Required');
  const code = isCreatedInBrowser ? JSON.stringify(response) : typed;
  const permit = {
    // The login decides whether it may be added to other factors.
    allowsSeveral: false,
    authenticatorId: id,
    spend: async () => (await deps.challenges.spendTicket(PURPOSE, authSession)) !== undefined,
  };
  const verification = await factor.verify(deps, { ...factorRequestOf(actor), permit }, { code, oobCode });
  if (verification.ok) return id;
  if (verification.outcome === 'pending' || verification.outcome === 'too-fast')
    throw new AuthError(400, 'authorization_pending', 'The device has not answered yet.');
  throw new AuthError(400, 'invalid_grant', 'The code is wrong, used or too old.');
}

async function replaceRecoveryCode(
  deps: EnrollmentDependencies,
  { user, login }: Actor,
  authSession: string,
  codeHash: string,
): Promise<string> {
  if ((await deps.challenges.spendTicket(PURPOSE, authSession)) === undefined) throw unknownSession();
  const still = [deps.users.stillWrite(user)];
  await deps.factorChanges.apply(user.id, login.id, () => saveRecoveryCode(deps, user.id, codeHash, still));
  return recoveryCodeId(user.id);
}
