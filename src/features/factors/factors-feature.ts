// Second factors: the MFA API, its grants and its pages.

import type { Context } from 'koa';
import type { Logger } from 'pino';
import { z } from 'zod';
import { sendMethodNotice } from '../../capabilities/delivery/method-notice.ts';
import { feature } from '../../engine/provider/feature.ts';
import type { ApiToken } from '../../engine/token/api-tokens.ts';
import { AuthError, oauthShape } from '../../http/errors.ts';
import { languagesOf } from '../../http/languages.ts';
import { CLIENT_FIELDS, optional, required, unchecked } from '../../http/parameter-schemas.ts';
import { bodyObject, type Fields, textField } from '../../http/server/body.ts';
import { type RouteDeclarations, route } from '../../http/server/router.ts';
import { resourceServerSchema } from '../../records/clients/apis.ts';
import type { ResourceServer } from '../../records/collections.ts';
import { MFA_SCOPES, methodTypeOf } from '../../records/users/second-factors.ts';
import type { BuiltInNeeds, BuiltIns } from '../../tenant/config.ts';
import type { User } from '../../users/user.ts';
import { API_TOKEN_SECONDS, type Authenticator } from './authenticators.ts';
import { type BearerDependencies, bearerOf, mfaAudience, requirePermission, userOf } from './bearer.ts';
import { startChallenge } from './challenge.ts';
import type { ChallengePagesDependencies } from './challenge-pages.ts';
import { type EnrollmentTarget, enroll } from './enroll.ts';
import type { FactorDependencies, StartedEnrollment } from './factor.ts';
import { FACTORS } from './factors.ts';
import { factorEvents, factorLimits } from './factors-declaration.ts';
import { type MfaGrantDependencies, malformed, mfaGrants, readMfaToken } from './factors-grants.ts';
import { mfaPages } from './page-routes.ts';
import { activeAuthenticators, factorOf } from './policy.ts';

// The MFA API as an API of the tenant.

function mfaBuiltIns({ issuer }: BuiltInNeeds): BuiltIns {
  const identifier = mfaAudience(issuer);
  const api: ResourceServer = {
    ...resourceServerSchema.parse({
      name: 'MFA',
      identifier,
      scopes: MFA_SCOPES.map((value) => ({ value })),
      token_lifetime: API_TOKEN_SECONDS,
      token_lifetime_for_web: API_TOKEN_SECONDS,
      allow_offline_access: false,
    }),
    is_system: true,
    id: 'gatehouse-mfa',
  };
  return { apis: [{ identifier, record: () => api }] };
}

// The routes of the MFA API (docs/reference/wire/mfa.md).

// Schemas of the answers of the MFA API, for the API document.

/** Returns an enum of the values without duplicates, which `z.enum` needs. */
const oneOf = (values: readonly string[]) => z.enum([...new Set(values)]);
const authenticatorTypes = (factors: typeof FACTORS) =>
  oneOf(factors.map(({ authenticatorType }) => authenticatorType));

const challengeAnswer = z.object({
  challenge_type: authenticatorTypes(FACTORS.filter(({ grant }) => grant !== undefined)),
  oob_code: optional('With `oob`: for the token endpoint.'),
  binding_method: z.literal('prompt').optional().describe('The user types a code that was sent.'),
});

/** The answer of POST /mfa/associate. */
const association = z.object({
  authenticator_type: authenticatorTypes(FACTORS.filter((factor) => factor.enroll !== undefined)),
  id: required('The id of the authenticator.'),
  secret: optional('With `otp`: base32, for the authenticator app.'),
  barcode_uri: optional('The URI for a QR code: the secret, or the enrolment of a device.'),
  oob_channels: optional('`sms`, `email` or `auth0`.'),
  oob_channel: optional('The same, under the name that SDKs read.'),
  oob_code: optional('With `oob`: for the token endpoint.'),
  binding_method: z.literal('prompt').optional().describe('The user types a code that was sent.'),
  recovery_codes: z.array(z.string()).optional().describe('With the first authenticator.'),
});

const authenticatorAnswer = z.object({
  id: z.string(),
  authenticator_type: authenticatorTypes(FACTORS),
  type: oneOf(FACTORS.map(({ type }) => type)),
  active: z.boolean().describe('Whether it was confirmed.'),
  oob_channel: z.string().optional(),
  name: optional('Part of the phone number or address, so that the user recognizes it.'),
});

interface MfaRoutesDependencies extends BearerDependencies {
  log: Logger;
  /** @returns its `client_id`. */
  authenticateClient(ctx: Context): Promise<string>;
}

const api = { cors: 'applications', errors: oauthShape } as const;

type ChallengeBody = z.output<typeof challengeBody>;

const challengeBody = z.object({
  ...CLIENT_FIELDS,
  mfa_token: z.string().min(1).describe('The token from the error `mfa_required`.'),
  challenge_type: optional(
    'The kinds of challenge that the application supports, separated by spaces: `otp`, `oob`.',
  ),
  authenticator_id: optional('The id of the authenticator; by default the safest one that fits.'),
});

const associateBody = z.object({
  ...CLIENT_FIELDS,
  authenticator_types: unchecked('`otp` or `oob`, as a list of one or as a string.', ['array', 'string']),
  oob_channels: unchecked('With `oob`: `sms`, `email` or `auth0`, as a list of one or as a string.', [
    'array',
    'string',
  ]),
  phone_number: unchecked('With `sms`: the phone number, in E.164.'),
  email: unchecked("With `email`: the e-mail address; by default the user's own."),
});

const mfaRoutes: RouteDeclarations<MfaRoutesDependencies> = {
  'POST /mfa/challenge': route({
    ...api,
    limit: factorLimits.mfaChallenge,
    summary: 'Challenge a second factor: send a code, or notify a device',
    security: ['client'],
    answers: { 200: { description: 'The challenge', body: challengeAnswer } },
    body: challengeBody,
    handle: handleChallenge,
  }),
  'POST /mfa/associate': {
    ...api,
    limit: factorLimits.mfaAssociate,
    summary: 'Begin to enrol an authenticator',
    security: ['mfaToken', 'accessToken'],
    uncheckedBody: associateBody,
    answers: {
      200: { description: 'The authenticator, to be confirmed at the token endpoint', body: association },
    },
    handle: handleAssociate,
  },
  'GET /mfa/authenticators': {
    ...api,
    limit: factorLimits.mfaVerify,
    summary: "The user's authenticators",
    security: ['mfaToken', 'accessToken'],
    answers: { 200: { description: 'The confirmed ones first', body: z.array(authenticatorAnswer) } },
    handle: handleList,
  },
  'DELETE /mfa/authenticators/:id': {
    ...api,
    limit: factorLimits.mfaVerify,
    summary: 'Remove an authenticator',
    security: ['accessToken'],
    answers: { 204: 'Removed' },
    handle: handleRemove,
  },
};

async function handleChallenge(
  deps: MfaRoutesDependencies,
  ctx: Context,
  { body }: { body: ChallengeBody },
): Promise<void> {
  const { mfa_token: token, challenge_type: types = '', authenticator_id: authenticatorId } = body;
  ctx.set('Cache-Control', 'no-store');
  const clientId = await deps.authenticateClient(ctx);
  await requireMfaGrant(deps, clientId);
  const session = await readMfaToken(deps, token, clientId);
  const user = await userOf(deps, session.userId);
  const { credentialVersion, presence } = session.request.firstFactor;
  const challenge = await startChallenge(
    deps,
    {
      user,
      credentialVersion,
      presence,
      clientId,
      ip: ctx.ip,
      languages: languagesOf(ctx),
    },
    {
      types: types === '' ? undefined : types.split(/\s+/).filter(Boolean),
      authenticatorId: authenticatorId || undefined,
    },
  );
  const { factor, oobCode, prompt } = challenge;
  ctx.body = {
    challenge_type: factor.authenticatorType,
    ...(oobCode !== undefined && { oob_code: oobCode }),
    ...(prompt && { binding_method: 'prompt' }),
  };
}

/** @throws AuthError 403 */
async function requireMfaGrant({ config }: MfaRoutesDependencies, clientId: string): Promise<void> {
  const grantTypes = (await config.client(clientId))?.grant_types ?? [];
  if (grantTypes.some((type) => type.includes('/oauth/grant-type/mfa-'))) return;
  throw new AuthError(403, 'unauthorized_client', 'No MFA grant type is allowed for the client.');
}

async function handleAssociate(deps: MfaRoutesDependencies, ctx: Context): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  const fields = bodyObject(ctx);
  // The token identifies user and application. A client secret or assertion is optional: most SDKs send none here.
  const authenticatesClient = (fields.client_secret ?? fields.client_assertion ?? undefined) !== undefined;
  const clientIdSent = authenticatesClient
    ? await deps.authenticateClient(ctx)
    : textField(fields, 'client_id');
  const { user, clientId, credentialVersion, presence, apiAccess } = await bearerOf(deps, ctx, 'enroll');
  if (clientIdSent !== undefined && clientIdSent !== clientId) throw malformed();
  if (apiAccess === undefined && (await activeAuthenticators(deps, user)).length > 0) {
    throw new AuthError(403, 'access_denied', 'User is already enrolled.');
  }
  const target = targetOf(deps, fields, user);
  const facts = { clientId, ip: ctx.ip, languages: languagesOf(ctx) };
  const started = await enroll(deps, { user, credentialVersion, presence, ...facts }, target);
  ctx.body = associationView(deps, started);
}

function targetOf({ factors, config }: MfaRoutesDependencies, fields: Fields, user: User): EnrollmentTarget {
  const [type, ...more] = listOf(fields, 'authenticator_types');
  const named = factors.filter(({ enroll }) => type !== undefined && enroll?.requestedAs.includes(type));
  if (type === undefined || named.length === 0 || more.length > 0) throw wrongTypes();
  const withoutChannel = named.find(({ channel }) => channel === undefined);
  if (withoutChannel !== undefined) return { factor: withoutChannel };
  const [channel = type, ...others] = listOf(fields, 'oob_channels');
  if (others.length > 0) throw wrongTypes();
  const { vendor_channel: vendorChannel } = config.settings();
  const factor = factors.find((one) => one.channel?.(vendorChannel) === channel);
  if (factor !== undefined) return { factor, address: factor.enroll?.addressOf?.(fields, user) };
  throw new AuthError(400, 'invalid_request', 'oob_channels must have exactly one known channel');
}

function wrongTypes(): AuthError {
  return new AuthError(400, 'invalid_request', 'authenticator_types must have exactly one of otp, oob');
}

/** Returns a field that is a list, or a single text in place of a list of one. */
function listOf(fields: Fields, name: string): string[] {
  const value = fields[name];
  if (value === undefined || value === null) return [];
  if (typeof value === 'string') return value === '' ? [] : [value];
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value;
  throw new AuthError(400, 'invalid_request', `Invalid parameter: ${name}`);
}

async function handleList(deps: MfaRoutesDependencies, ctx: Context): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  const { user } = await bearerOf(deps, ctx, 'read:authenticators');
  const active = await activeAuthenticators(deps, user);
  const unconfirmed = (await deps.authenticators.of(user.id)).filter((one) => !one.active);
  ctx.body = [...active, ...unconfirmed].map((authenticator) => authenticatorView(deps, authenticator));
}

async function handleRemove(deps: MfaRoutesDependencies, ctx: Context): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  const { user, clientId, apiAccess } = await bearerOf(deps, ctx, 'remove:authenticators');
  if (apiAccess === undefined)
    throw new AuthError(403, 'insufficient_scope', 'Insufficient scope, expected: remove:authenticators');
  const id = String(ctx.params.id);
  const authenticator = await deps.authenticators.get(id);
  if (authenticator?.user_id !== user.id)
    throw new AuthError(404, 'not_found', 'There is no such authenticator.');
  await remove(deps, user, apiAccess.token, id);
  deps.events.record({ type: factorEvents.gd_unenroll, user_id: user.id, client_id: clientId, ip: ctx.ip });
  if (authenticator.active) {
    const application = await deps.config.client(clientId);
    const context = { application, user, languages: languagesOf(ctx), ip: ctx.ip };
    await sendMethodNotice(deps, 'method_removed', {
      ...context,
      method: methodTypeOf(authenticator.kind),
    });
  }
  ctx.status = 204;
}

/** Removes an authenticator, if the token may do that now. @throws AuthError 401 */
async function remove(deps: MfaRoutesDependencies, user: User, token: ApiToken, id: string): Promise<void> {
  const right = await requirePermission(deps, user, token);
  if (right.hasSecondFactor) {
    await deps.authenticators.remove(id, token.id, [deps.users.stillWrite(user)]);
    return;
  }
  // Without a second factor only unconfirmed ones can be removed, even if this one was confirmed meanwhile.
  if (!(await deps.authenticators.removeUnconfirmed(id)))
    throw new AuthError(401, 'access_denied', 'Unauthorized');
}

// Authenticators as the MFA API shows them.

type ViewDependencies = Pick<FactorDependencies, 'config' | 'factors'>;

/** Returns the answer to a started enrolment. Secrets in it are shown this once. */
function associationView(deps: ViewDependencies, enrolled: StartedEnrollment): Record<string, unknown> {
  const { authenticator, secret, barcodeUri, oobCode, prompt, recoveryCode } = enrolled;
  const { factor, channel } = termsOf(deps, authenticator);
  return {
    authenticator_type: factor?.authenticatorType,
    // The API contract has the first name, SDKs read the second.
    ...(channel === undefined ? {} : { oob_channels: channel, oob_channel: channel }),
    ...(oobCode === undefined ? {} : { oob_code: oobCode }),
    ...(prompt ? { binding_method: 'prompt' } : {}),
    ...(secret === undefined ? {} : { secret }),
    ...(barcodeUri === undefined ? {} : { barcode_uri: barcodeUri }),
    ...(recoveryCode === undefined ? {} : { recovery_codes: [recoveryCode] }),
    id: authenticator.id,
  };
}

/** Returns an authenticator without its secrets, as the list of authenticators shows it. */
function authenticatorView(deps: ViewDependencies, authenticator: Authenticator): Record<string, unknown> {
  const { id, active } = authenticator;
  const { factor, channel } = termsOf(deps, authenticator);
  const name = factor?.nameOf?.(authenticator);
  return {
    id,
    authenticator_type: factor?.authenticatorType,
    active,
    type: factor?.type,
    ...(channel === undefined ? {} : { oob_channel: channel }),
    ...(name === undefined ? {} : { name }),
  };
}

function termsOf(deps: ViewDependencies, authenticator: Authenticator) {
  const factor = factorOf(deps, authenticator);
  return { factor, channel: factor?.channel?.(deps.config.settings().vendor_channel) };
}

interface MfaDependencies extends MfaRoutesDependencies, ChallengePagesDependencies {}

export const mfa = feature<MfaDependencies, MfaGrantDependencies>({
  name: 'mfa',
  builtIns: mfaBuiltIns,
  limits: factorLimits,
  events: factorEvents,
  grants: mfaGrants,
  routes: { ...mfaRoutes, ...mfaPages },
  collections: ['authenticators', 'factorChanges', 'browsers'],
});
