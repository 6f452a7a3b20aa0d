// Enrolling a second factor (spec "MFA authenticator association response").
import { parsePhoneNumberFromString } from 'libphonenumber-js';
import type { Messages } from '../delivery/messages.ts';
import { DeliveryError } from '../delivery/messages.ts';
import { AuthError } from '../http/errors.ts';
import type { Languages } from '../http/languages.ts';
import { normalizeEmail } from '../records/email.ts';
import type { User } from '../users/user.ts';
import type { Authenticator } from './authenticators.ts';
import { otpauthUri } from './otp/totp.ts';
import { CODE_SECONDS } from './out-of-band.ts';
import { enabledFactors } from './policy.ts';
import type { WebPush } from './push/web-push.ts';
import { activeAuthenticators } from './second-factor.ts';
import type { VerifyDependencies } from './verify.ts';

export interface EnrollDependencies extends VerifyDependencies {
  baseUrl: string;
  messages: Messages;
  webPush: WebPush;
  /** Counts a message to an address or number that may be anybody's. @throws AuthError 429 */
  limitDestination(destination: string): Promise<void>;
}

export interface EnrollRequest {
  user: User;
  /** The version of the credential that the user's login was proved by. */
  credentialVersion: number;
  clientId: string;
  ip: string;
  languages: Languages;
}

/** What is asked for: an app, or a channel with where it leads. */
export type Enrollment =
  | { kind: 'otp' }
  | { kind: 'sms'; phoneNumber: string }
  | { kind: 'email'; email: string }
  | { kind: 'push' };

/** What was made. */
export interface Enrolled {
  authenticator: Authenticator;
  /** Of an app: shown this once. */
  secret?: string;
  /** What an app or our own authenticator scans. */
  barcodeUri?: string;
  oobCode?: string;
  /** Whether a code has to be typed. */
  prompt: boolean;
  /** With the first authenticator: shown this once. */
  recoveryCode?: string;
}

/**
 * Begins to enrol an authenticator; it counts once it was used.
 * @throws AuthError 400 when the factor is off, the address is none or there are too many, 503 when the code cannot be sent.
 */
export async function enroll(
  deps: EnrollDependencies,
  request: EnrollRequest,
  wanted: Enrollment,
): Promise<Enrolled> {
  requireFactor(deps, wanted.kind);
  const { user, clientId, ip } = request;
  const own = (await deps.authenticators.of(user.id)).filter(
    ({ active, kind }) => active && kind !== 'recovery-code',
  );
  if (own.length >= MOST)
    throw new AuthError(400, 'invalid_request', 'The user has too many authenticators: one must be removed.');
  deps.events.record({ type: 'gd_start_enroll', user_id: user.id, client_id: clientId, ip });
  const made = await make(deps, request, wanted);
  const hasNone = (await activeAuthenticators(deps, user)).length === 0;
  if (!hasNone || !enabledFactors(deps.config).has('recovery-code')) return made;
  return { ...made, recoveryCode: await deps.authenticators.addRecoveryCode(made.authenticator.id) };
}

/** How many authenticators a user may have. */
const MOST = 20;

const FACTOR = { otp: 'otp', sms: 'phone', email: 'email', push: 'push-notification' } as const;

function requireFactor({ config }: EnrollDependencies, kind: Enrollment['kind']): void {
  if (enabledFactors(config).has(FACTOR[kind])) return;
  throw new AuthError(400, 'invalid_request', `The factor ${FACTOR[kind]} is not enabled.`);
}

async function make(deps: EnrollDependencies, request: EnrollRequest, wanted: Enrollment): Promise<Enrolled> {
  const { user, credentialVersion, clientId, ip } = request;
  const by = { userId: user.id, credentialVersion };
  const issuer = deps.config.settings().tenant.friendly_name;
  const account = user.email ?? user.username ?? user.phone_number ?? user.id;
  switch (wanted.kind) {
    case 'otp': {
      const { authenticator, secret } = await deps.authenticators.addOtp(by);
      return { authenticator, secret, barcodeUri: otpauthUri(secret, issuer, account), prompt: false };
    }
    case 'push': {
      const authenticator = await deps.authenticators.add(by, 'push', {});
      const { oobCode } = await deps.oob.issueDevice({ authenticator, clientId, ip });
      const { secret: ticket } = await deps.challenges.issueTicket({
        purpose: DEVICE_ENROLLMENT,
        subject: authenticator.id,
        userId: user.id,
        ttlSeconds: DEVICE_ENROLLMENT_SECONDS,
        data: { authenticatorId: authenticator.id },
      });
      const query = new URLSearchParams({ enrollment_tx_id: ticket, base_url: deps.baseUrl });
      const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`;
      return { authenticator, oobCode, barcodeUri: `otpauth://totp/${label}?${query}`, prompt: false };
    }
    case 'sms':
    case 'email': {
      const reach =
        wanted.kind === 'sms'
          ? { phone_number: phoneOf(wanted.phoneNumber) }
          : { email: emailOf(wanted.email) };
      const authenticator = await deps.authenticators.add(by, wanted.kind, reach);
      try {
        return { authenticator, oobCode: await sendCode(deps, request, authenticator), prompt: true };
      } catch (thrown) {
        await deps.authenticators.remove(authenticator.id);
        throw thrown;
      }
    }
  }
}

/** The ticket by which a device enrols. */
export const DEVICE_ENROLLMENT = 'device_enrollment';
const DEVICE_ENROLLMENT_SECONDS = 600;

/**
 * Sends a code to an authenticator that is reached by a message. @returns the challenge's `oob_code`.
 * @throws AuthError 400, 429, 503
 */
export async function sendCode(
  deps: EnrollDependencies,
  { user, clientId, ip, languages }: EnrollRequest,
  authenticator: Authenticator,
): Promise<string> {
  const to = authenticator.phone_number ?? authenticator.email ?? '';
  if (!(await deps.limits.spend('mfaMessage', user.id)))
    throw new AuthError(429, 'too_many_requests', 'Too many messages for this user. Try again later.');
  // One that is confirmed is the user's own: what strangers have sent there takes nothing from it.
  if (!authenticator.active) await deps.limitDestination(`${authenticator.kind}\n${to}`);
  const { oobCode, code, revoke } = await deps.oob.issueCode({ authenticator, clientId, ip });
  const application = await deps.config.client(clientId);
  try {
    const kind = authenticator.kind === 'sms' ? 'mfa_sms' : 'mfa_oob_code';
    const notice = { to, application, user, code, languages, ip };
    await deps.messages.send(kind, notice, { revoke, ttlSeconds: CODE_SECONDS });
    return oobCode;
  } catch (thrown) {
    if (!(thrown instanceof DeliveryError)) throw thrown;
    throw thrown.code === 'invalid-number'
      ? new AuthError(400, 'invalid_phone_number', thrown.message, { cause: thrown })
      : new AuthError(
          503,
          'temporarily_unavailable',
          'The message could not be sent. Try again in a few minutes.',
          {
            cause: thrown,
          },
        );
  }
}

function phoneOf(text: string): string {
  const number = parsePhoneNumberFromString(text);
  if (number?.isPossible() === true) return number.number;
  throw new AuthError(400, 'invalid_phone_number', 'phone_number must be a phone number in E.164 format.');
}

function emailOf(text: string): string {
  const email = normalizeEmail(text);
  if (email !== undefined) return email;
  throw new AuthError(400, 'invalid_request', 'email must be an e-mail address.');
}
