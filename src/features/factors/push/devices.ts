// Devices that approve logins (docs/reference/authenticator-api.md). Each has its own key pair, and everything it sends
// is a JWT signed with its private key, with this server as the audience, and recent.
import { importJWK, type JWK, errors as joseErrors } from 'jose';
import { z } from 'zod';
import type { Challenges } from '../../../capabilities/protection/challenges.ts';
import { unverifiedClaims, verifyJwt } from '../../../capabilities/signing/verify-jwt.ts';
import {
  type AuthorizationDetail,
  detailLines,
  visibleDetail,
} from '../../../engine/base/authorization-details.ts';
import { engineEvents } from '../../../engine/base/engine-declaration.ts';
import { AuthError } from '../../../http/errors.ts';
import { isClientUrl } from '../../../records/clients/registrations.ts';
import {
  hostOfCallback,
  isSelfRegistered,
  isStranger,
  visibleText,
} from '../../../records/clients/third-parties.ts';
import type { Client } from '../../../records/collections.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { Config } from '../../../tenant/config.ts';
import type { Events } from '../../../tenant/events.ts';
import type { Users } from '../../../users/users.ts';
import type { Authenticator, Authenticators } from '../authenticators.ts';
import { accountNameOf } from '../enroll.ts';
import { factorEvents } from '../factors-declaration.ts';
import { type OobChallenge, recordDecision, waitingForDevice } from '../out-of-band.ts';
import { answerApproval, waitingApprovals } from './approvals.ts';
import { registerDevice, setPushEndpoint, setShowsDetails } from './device-records.ts';
import type { WebPush } from './web-push.ts';

export interface DeviceDependencies {
  baseUrl: string;
  config: Config;
  users: Users;
  authenticators: Authenticators;
  challenges: Challenges;
  events: Events;
  webPush: WebPush;
  /** The wall clock: devices date their assertions by their own clocks. */
  wallClock: Clock;
}

/** The purpose of the ticket by which a device enrols. */
export const DEVICE_ENROLLMENT = 'device_enrollment';

/** How old an assertion of a device may be, seconds. */
const MAX_AGE_SECONDS = 60;

const publicKey = z.object({
  kty: z.literal('EC'),
  crv: z.literal('P-256'),
  x: z.string().regex(/^[\w-]{43}$/),
  y: z.string().regex(/^[\w-]{43}$/),
});

/** The body by which a device enrols. */
export const enrollment = z.object({
  enrollment_tx_id: z.string().min(1).max(100),
  public_key: publicKey,
  name: z.string().trim().min(1).max(100),
  /** A JWT signed with the private key: proof of possession. */
  proof: z.string().max(2000),
});

/** A device, as the answer to its enrolment describes it. */
export const enrolledDevice = z.object({
  id: z.string(),
  account: z.string().describe('The account whose logins the device approves.'),
  issuer: z.string().describe("The tenant's name."),
});

type EnrolledDevice = z.output<typeof enrolledDevice>;

/**
 * Enrols a device. The ticket of the QR code is used once; the key pair is the device's own.
 * @throws AuthError 400 `invalid_request`; `invalid_grant` when the ticket is unknown, used or expired.
 */
export async function enrollDevice(
  deps: DeviceDependencies,
  body: unknown,
  ip: string,
): Promise<EnrolledDevice> {
  const parsed = enrollment.safeParse(body);
  if (!parsed.success) {
    const [fault] = parsed.error.issues;
    throw new AuthError(400, 'invalid_request', `Invalid parameter: ${fault?.path.join('.') ?? ''}`);
  }
  const { enrollment_tx_id: ticket, public_key: key, name, proof } = parsed.data;
  const claims = await verifiedClaims(deps, proof, key);
  if (claims?.enrollment_tx_id !== ticket) {
    throw new AuthError(400, 'invalid_request', 'proof must be signed with the key, for this enrolment.');
  }
  const verifiedChallenge = await deps.challenges.spendTicket(DEVICE_ENROLLMENT, ticket);
  const id = String(verifiedChallenge?.data.authenticatorId ?? '');
  const user =
    verifiedChallenge?.userId === undefined ? undefined : await deps.users.get(verifiedChallenge.userId);
  if (user === undefined || !(await registerDevice(deps.authenticators, id, { publicKey: key, name }))) {
    throw new AuthError(400, 'invalid_grant', 'This code is too old or was already used.');
  }
  // The enrolment counts as the answer to the challenge that the login waits for.
  for (const waiting of await waitingForDevice(deps, id))
    await recordDecision(deps, waiting.id, id, 'accepted');
  deps.events.record({ type: factorEvents.gd_enrollment_complete, user_id: user.id, ip });
  return {
    id,
    account: accountNameOf(user),
    issuer: deps.config.settings().tenant.friendly_name,
  };
}

/** A login that waits for a device's answer, as the device shows it. */
export const waitingRequest = z.object({
  id: z.string(),
  application: z.string().describe("The application's name."),
  application_unverified: z
    .literal(true)
    .optional()
    .describe('Nobody has verified the name: the application has chosen it itself. Show it as such.'),
  application_hosts: z
    .array(z.string())
    .optional()
    .describe(
      'The hosts behind an application of others: that of its document, or those that its users are led to.',
    ),
  ip: z.string(),
  number: z.string().optional().describe('The number that the login page shows too.'),
  binding_message: z
    .string()
    .optional()
    .describe('The message that the application shows, for a login without a browser.'),
  details: z
    .array(z.object({ type: z.string(), lines: z.array(z.object({ name: z.string(), value: z.string() })) }))
    .optional()
    .describe('The `authorization_details`, as the device shows them: no characters in them are invisible.'),
  at: z.iso.datetime(),
  expires_at: z.iso.datetime(),
});

type WaitingRequest = z.output<typeof waitingRequest>;

/**
 * Verifies an assertion, and notes whether the device shows the details of requests.
 * @returns the device's id and its user.
 * @throws AuthError 401
 */
export async function identify(
  deps: DeviceDependencies,
  assertion: string,
): Promise<{ id: string; userId: string }> {
  const { authenticator, claims } = await deviceOf(deps, assertion);
  const { id, user_id: userId, showsDetails = false } = authenticator;
  const isAble = Array.isArray(claims.shows) && claims.shows.includes(DETAILS);
  if (isAble !== showsDetails) await setShowsDetails(deps.authenticators, id, isAble);
  return { id, userId };
}

/** In the claim `shows` of a device's assertion. */
const DETAILS = 'authorization_details';

/** Returns the logins that wait for a device, newest first; undefined when the device was removed. */
export async function waitingRequests(
  deps: DeviceDependencies,
  deviceId: string,
): Promise<WaitingRequest[] | undefined> {
  const device = await deps.authenticators.get(deviceId);
  if (device === undefined) return undefined;
  const waiting = [...(await waitingForDevice(deps, deviceId)), ...(await waitingApprovals(deps, device))];
  waiting.sort((a, b) => b.issuedAt - a.issuedAt);
  return Promise.all(waiting.map((one) => waitingRequestOf(deps, one)));
}

type WaitingChallenge = Pick<OobChallenge, 'id' | 'clientId' | 'ip' | 'number' | 'issuedAt' | 'expiresAt'> & {
  bindingMessage?: string;
  authorizationDetails?: AuthorizationDetail[];
};

async function waitingRequestOf(
  { config }: DeviceDependencies,
  challenge: WaitingChallenge,
): Promise<WaitingRequest> {
  const client = await config.client(challenge.clientId);
  return {
    id: challenge.id,
    ...shownApplication(client, challenge.clientId),
    ip: challenge.ip,
    number: challenge.number,
    binding_message: challenge.bindingMessage,
    details: challenge.authorizationDetails?.map((one) => {
      const detail = visibleDetail(one);
      return { type: detail.type, lines: detailLines(detail) };
    }),
    at: new Date(challenge.issuedAt).toISOString(),
    expires_at: new Date(challenge.expiresAt * 1000).toISOString(),
  };
}

// docs/understand/decisions/authorize.md#a-strict-third-party-application-is-shown-to-each-user
function shownApplication(
  client: Client | undefined,
  clientId: string,
): Pick<WaitingRequest, 'application' | 'application_unverified' | 'application_hosts'> {
  if (client === undefined) return { application: visibleText(clientId) };
  if (!isStranger(client)) return { application: client.name };
  const places = isClientUrl(clientId) ? [clientId] : client.callbacks;
  return {
    application: client.name,
    ...(isSelfRegistered(client) && { application_unverified: true }),
    application_hosts: [...new Set(places.flatMap((one) => hostOfCallback(one) ?? []))],
  };
}

/**
 * Records a device's answer, once and before the login expires.
 * @throws AuthError 400 when the assertion has no answer for this request, 401 when it is not from a device, 404
 *   when no such request waits for the device.
 */
export async function answerRequest(
  deps: DeviceDependencies,
  id: string,
  assertion: string,
  ip: string,
): Promise<void> {
  const { authenticator, claims } = await deviceOf(deps, assertion);
  const { request, answer } = claims;
  if (request !== id || (answer !== 'allow' && answer !== 'deny')) {
    throw new AuthError(
      400,
      'invalid_request',
      'The answer must be signed: allow or deny, for this request.',
    );
  }
  const decision = answer === 'allow' ? 'accepted' : 'rejected';
  const isRecorded =
    (await recordDecision(deps, id, authenticator.id, decision)) ||
    (await answerApproval(deps, { id, ip, isAllowed: answer === 'allow' }, authenticator));
  if (!isRecorded) {
    throw new AuthError(404, 'not_found', 'Nothing waits for this answer any more.');
  }
  if (decision === 'rejected') {
    deps.events.record({ type: engineEvents.gd_auth_rejected, user_id: authenticator.user_id, ip });
  }
}

/**
 * Stores the push endpoint of a device, which its assertion contains.
 * @throws AuthError 400 when the endpoint is not that of a push service, 401 when the assertion is not from a
 *   device.
 */
export async function subscribeDevice(deps: DeviceDependencies, assertion: string): Promise<void> {
  const { authenticator, claims } = await deviceOf(deps, assertion);
  const { push_endpoint: endpoint } = claims;
  if (typeof endpoint !== 'string' || !deps.webPush.isService(endpoint)) {
    throw new AuthError(400, 'invalid_request', 'push_endpoint must be the address of a push service.');
  }
  await setPushEndpoint(deps.authenticators, authenticator.id, endpoint);
}

/** Verifies an assertion with the key of the device that it names. @throws AuthError 401 */
async function deviceOf(
  deps: DeviceDependencies,
  assertion: string,
): Promise<{ authenticator: Authenticator; claims: Record<string, unknown> }> {
  const id = subjectOf(assertion);
  const authenticator = id === undefined ? undefined : await deps.authenticators.get(id);
  const key = authenticator?.publicKey;
  const claims = key === undefined ? undefined : await verifiedClaims(deps, assertion, key as JWK);
  if (authenticator === undefined || claims?.sub !== authenticator.id) {
    throw new AuthError(401, 'access_denied', 'Unauthorized');
  }
  return { authenticator, claims };
}

/** Returns the `sub` of an assertion that is not verified yet, because it names the key to verify with. */
function subjectOf(assertion: string): string | undefined {
  try {
    const { sub } = unverifiedClaims(assertion);
    return typeof sub === 'string' ? sub : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the claims of a recent JWT for this server that the key has signed; undefined for any other. */
async function verifiedClaims(
  { baseUrl, wallClock }: DeviceDependencies,
  jwt: string,
  key: JWK,
): Promise<Record<string, unknown> | undefined> {
  try {
    const { payload } = await verifyJwt(jwt, await importJWK({ ...key }, 'ES256'), {
      algorithms: ['ES256'],
      types: [undefined],
      audience: baseUrl,
      maxTokenAge: MAX_AGE_SECONDS,
      clockTolerance: 30,
      requiredClaims: ['iat'],
      currentDate: new Date(wallClock()),
    });
    return payload;
  } catch (thrown) {
    if (thrown instanceof joseErrors.JOSEError || thrown instanceof DOMException) return undefined;
    if (thrown instanceof TypeError) return undefined;
    throw thrown;
  }
}
