// Adding to what one logs in with: begun, then verified within ten minutes by the login that began it. `auth_session` is
// good for one success, whichever factor it is of.
import { enroll } from '../factors/enroll.ts';
import type { Enrolled, Factor } from '../factors/factor.ts';
import { activeAuthenticators, enabledFactors } from '../factors/policy.ts';
import { keepRecoveryCode, prepareRecoveryCode, recoveryCodeId } from '../factors/recovery/codes.ts';
import { AuthError } from '../http/errors.ts';
import { type MethodType, methodTypeOf, SECOND_FACTORS } from '../records/second-factors.ts';
import { type Actor, factorRequestOf, requireFreshLogin, requireRight } from './actor.ts';
import { invalidField } from './errors.ts';
import { type MethodDependencies, noMethod } from './methods.ts';
import { tellChange } from './tell.ts';
import { authenticatorView, type MethodView } from './views.ts';

export type EnrollmentDependencies = MethodDependencies;

/** An enrolment of a second factor that is asked for. */
interface NewFactor {
  type: MethodType;
  /** Where its codes go, where they are sent. */
  address?: string | undefined;
}

/** What was begun. */
interface BegunFactor {
  id: string;
  authSession: string;
  type: MethodType;
  /** Of an app or a device. */
  barcodeUri?: string | undefined;
  /** Of an app, to be typed. */
  secret?: string | undefined;
  /** For `navigator.credentials.create`, of what is made in the browser. */
  options?: object | undefined;
  /** Of the first one, or asked for. */
  recoveryCode?: string | undefined;
}

const PURPOSE = 'account_enrollment';
const SECONDS = 600;

/** What is kept beside an `auth_session`. */
interface KeptEnrollment {
  /** The login that began it, and its application. */
  login: string;
  clientId: string;
  /** The authenticator that was begun. */
  id: string;
  type: MethodType;
  oobCode?: string;
  /** Of a recovery code. */
  codeHash?: string;
}

/** The second factors that the tenant has on, by their published types. */
export function factorsOf(deps: Pick<MethodDependencies, 'config' | 'factors'>): Map<MethodType, Factor> {
  return new Map(enabledFactors(deps).map((factor) => [methodTypeOf(factor.kind), factor]));
}

/**
 * Begins to enrol a second factor.
 * @throws AuthError 401 for a login that is not fresh; 400 for a factor that is off or cannot be enrolled so, or an address
 *   that is none; 429; 503 where a code cannot be sent.
 */
export async function beginFactor(
  deps: EnrollmentDependencies,
  actor: Actor,
  { type, address }: NewFactor,
): Promise<BegunFactor> {
  await requireFreshLogin(deps, actor);
  const factor = factorsOf(deps).get(type);
  if (factor === undefined) throw notOffered(type);
  if (factor.recovers === true) return beginRecoveryCode(deps, actor, type);
  const { requestedAs = [], creation } = factor.enroll ?? {};
  if (requestedAs.length === 0 && creation === undefined) throw notOffered(type);
  const request = factorRequestOf(actor);
  const enrolled: Enrolled = await enroll(deps, request, { factor, address });
  const { authenticator, barcodeUri, secret, recoveryCode } = enrolled;
  const asked = { authenticatorId: authenticator.id, login: actor.login.id, at: actor.at };
  const made = await creation?.(deps, request, asked);
  const { oobCode } = made ?? enrolled;
  const kept = { id: authenticator.id, type, ...(oobCode !== undefined && { oobCode }) };
  const authSession = await keep(deps, actor, kept);
  return { ...kept, authSession, barcodeUri, secret, recoveryCode, options: made?.options };
}

function notOffered(type: MethodType): AuthError {
  return invalidField('type', `The factor ${type} is not enabled.`);
}

/** A recovery code recovers what there is: it takes the place of the one before when it is verified. */
async function beginRecoveryCode(
  deps: EnrollmentDependencies,
  actor: Actor,
  type: MethodType,
): Promise<BegunFactor> {
  if ((await activeAuthenticators(deps, actor.user)).length === 0)
    throw invalidField('type', 'A recovery code takes a factor that it recovers.');
  const { code, codeHash } = prepareRecoveryCode(deps.random);
  const kept = { id: `${SECOND_FACTORS['recovery-code'].prefix}|new`, type, codeHash };
  return { ...kept, authSession: await keep(deps, actor, kept), recoveryCode: code };
}

async function keep(
  deps: EnrollmentDependencies,
  { user, clientId, login }: Actor,
  kept: Omit<KeptEnrollment, 'login' | 'clientId'>,
): Promise<string> {
  const enrollment: KeptEnrollment = { ...kept, login: login.id, clientId };
  const { secret } = await deps.challenges.issueTicket({
    purpose: PURPOSE,
    // One of a type for a login: the next takes its place.
    subject: `${user.id}\n${login.id}\n${kept.type}`,
    userId: user.id,
    ttlSeconds: SECONDS,
    data: { enrollment },
  });
  return secret;
}

/** What proves that it works. */
interface FactorProof {
  id: string;
  authSession: string;
  code: string;
  /** What `navigator.credentials.create` gave, as `toJSON` writes it. */
  answered?: object | undefined;
}

/**
 * Verifies a second factor by its first use: of any number of racers one succeeds.
 * @throws AuthError 401 as {@link requireRight}; 400 `invalid_grant` for an `auth_session` that is unknown, used, over, or
 *   another login's, and for a wrong code; `authorization_pending` while a device has not answered; 429.
 */
export async function verifyFactor(
  deps: EnrollmentDependencies,
  actor: Actor,
  { id, authSession, code, answered }: FactorProof,
): Promise<MethodView> {
  await requireRight(deps, actor);
  const kept = await enrollmentOf(deps, actor, authSession);
  if (kept === undefined || kept.id !== id) throw unknownSession();
  const { type, codeHash } = kept;
  const made =
    codeHash === undefined
      ? await useFirst(deps, actor, { ...kept, authSession, code, answered })
      : await keepCode(deps, actor, authSession, codeHash);
  // The others were told where they were confirmed.
  if (codeHash !== undefined) await tellChange(deps, actor, 'method_added', type);
  const authenticator = await deps.authenticators.get(made);
  if (authenticator === undefined) throw noMethod();
  return authenticatorView(authenticator);
}

async function enrollmentOf(
  { challenges }: EnrollmentDependencies,
  { user, clientId, login }: Actor,
  authSession: string,
): Promise<KeptEnrollment | undefined> {
  const met = await challenges.peekTicket(PURPOSE, authSession);
  const kept = met?.data.enrollment as KeptEnrollment | undefined;
  const isTheirs = met?.userId === user.id && kept?.login === login.id && kept.clientId === clientId;
  return isTheirs ? kept : undefined;
}

/** One answer for whatever an `auth_session` is not. */
export function unknownSession(): AuthError {
  return new AuthError(400, 'invalid_grant', 'Invalid or expired auth_session.');
}

/** @returns the id of what was confirmed. */
async function useFirst(
  deps: EnrollmentDependencies,
  actor: Actor,
  { id, type, authSession, oobCode = '', code: typed, answered }: KeptEnrollment & Omit<FactorProof, 'id'>,
): Promise<string> {
  const factor = factorsOf(deps).get(type);
  if (factor === undefined) throw notOffered(type);
  const isMade = factor.enroll?.creation !== undefined;
  if (isMade && answered === undefined) throw invalidField('authn_response', 'Required');
  const code = isMade ? JSON.stringify(answered) : typed;
  const permit = {
    // Whether it may be more than the first, the login says.
    several: false,
    authenticatorId: id,
    spend: async () => (await deps.challenges.spendTicket(PURPOSE, authSession)) !== undefined,
  };
  const verification = await factor.verify(deps, { ...factorRequestOf(actor), permit }, { code, oobCode });
  if (verification.ok) return id;
  if (verification.outcome === 'pending' || verification.outcome === 'too-fast')
    throw new AuthError(400, 'authorization_pending', 'The device has not answered yet.');
  throw new AuthError(400, 'invalid_grant', 'The code is wrong, used or too old.');
}

async function keepCode(
  deps: EnrollmentDependencies,
  { user, login }: Actor,
  authSession: string,
  codeHash: string,
): Promise<string> {
  if ((await deps.challenges.spendTicket(PURPOSE, authSession)) === undefined) throw unknownSession();
  await deps.factorChanges.around(user.id, login.id, () => keepRecoveryCode(deps, user.id, codeHash));
  return recoveryCodeId(user.id);
}
