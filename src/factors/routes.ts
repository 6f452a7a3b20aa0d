// The MFA endpoints (spec "Multi-factor authentication"). Nothing is decided here.
import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { ApiToken } from '../engine/api-tokens.ts';
import { bodyObject, type Fields, requiredField, textField } from '../http/body-fields.ts';
import { AuthError, oauthShape } from '../http/errors.ts';
import { languagesOf } from '../http/languages.ts';
import type { Route } from '../http/routes.ts';
import type { User } from '../users/user.ts';
import type { Authenticator } from './authenticators.ts';
import { type BearerDependencies, bearerOf, judge, userOf } from './bearer.ts';
import { startChallenge } from './challenge.ts';
import { type EnrollDependencies, type Enrolled, type Enrollment, enroll } from './enroll.ts';
import { activeAuthenticators, isProfileEmail, malformed, readMfaToken } from './second-factor.ts';

export interface MfaRoutesDependencies extends EnrollDependencies, BearerDependencies {
  log: Logger;
  /** Authenticates the application that sent the request. @returns its client_id. */
  authenticateClient(ctx: Context): Promise<string>;
}

/** The routes of the MFA API. */
export function mfaRoutes(deps: MfaRoutesDependencies): Route[] {
  const api = { cors: 'applications', errors: oauthShape } as const;
  const fresh = (handle: typeof handleChallenge) => async (ctx: Context) => {
    ctx.set('Cache-Control', 'no-store');
    await handle(deps, ctx);
  };
  return [
    {
      ...api,
      methods: ['POST'],
      path: '/mfa/challenge',
      limit: 'mfaChallenge',
      handle: fresh(handleChallenge),
    },
    {
      ...api,
      methods: ['POST'],
      path: '/mfa/associate',
      limit: 'mfaAssociate',
      handle: fresh(handleAssociate),
    },
    { ...api, methods: ['GET'], path: '/mfa/authenticators', limit: 'mfaVerify', handle: fresh(handleList) },
    {
      ...api,
      methods: ['DELETE'],
      path: '/mfa/authenticators/:id',
      limit: 'mfaVerify',
      handle: fresh(handleRemove),
    },
  ];
}

async function handleChallenge(deps: MfaRoutesDependencies, ctx: Context): Promise<void> {
  const fields = bodyObject(ctx);
  const token = requiredField(fields, 'mfa_token');
  const clientId = await deps.authenticateClient(ctx);
  await requireMfaGrant(deps, clientId);
  const session = await readMfaToken(deps, token, clientId);
  const user = await userOf(deps, session.userId);
  const challenge = await startChallenge(
    deps,
    {
      user,
      credentialVersion: session.request.firstFactor.credentialVersion,
      clientId,
      ip: ctx.ip,
      languages: languagesOf(ctx),
    },
    {
      types: textField(fields, 'challenge_type')?.split(/\s+/).filter(Boolean),
      authenticatorId: textField(fields, 'authenticator_id'),
    },
  );
  const { type, oobCode, prompt } = challenge;
  ctx.body =
    type === 'otp'
      ? { challenge_type: 'otp' }
      : { challenge_type: 'oob', oob_code: oobCode, ...(prompt && { binding_method: 'prompt' }) };
}

/** @throws AuthError 403 for an application that could not use the answer: it has no MFA grant type. */
async function requireMfaGrant({ config }: MfaRoutesDependencies, clientId: string): Promise<void> {
  const grantTypes = (await config.client(clientId))?.grant_types ?? [];
  if (grantTypes.some((type) => type.includes('/oauth/grant-type/mfa-'))) return;
  throw new AuthError(403, 'unauthorized_client', 'No MFA grant type is allowed for the client.');
}

async function handleAssociate(deps: MfaRoutesDependencies, ctx: Context): Promise<void> {
  const fields = bodyObject(ctx);
  // The token says whose request it is. A secret or an assertion beside it is checked where one is sent: public
  // applications have none, and most SDKs send none here.
  const isProved = (fields.client_secret ?? fields.client_assertion ?? undefined) !== undefined;
  const named = isProved ? await deps.authenticateClient(ctx) : textField(fields, 'client_id');
  const { user, clientId, credentialVersion, managing } = await bearerOf(deps, ctx, 'enroll');
  if (named !== undefined && named !== clientId) throw malformed();
  if (managing === undefined && (await activeAuthenticators(deps, user)).length > 0) {
    throw new AuthError(403, 'access_denied', 'User is already enrolled.');
  }
  const wanted = readEnrollment(deps, fields, user);
  const languages = languagesOf(ctx);
  const enrolled = await enroll(deps, { user, credentialVersion, clientId, ip: ctx.ip, languages }, wanted);
  ctx.body = associationOf(deps, enrolled);
}

function readEnrollment({ config }: MfaRoutesDependencies, fields: Fields, user: User): Enrollment {
  const [type, ...more] = listOf(fields, 'authenticator_types');
  if (type === undefined || more.length > 0) {
    throw new AuthError(400, 'invalid_request', 'authenticator_types must have exactly one of otp, oob');
  }
  if (type === 'otp') return { kind: 'otp' };
  // SDKs send e-mail as a type of its own, too.
  const [channel = type, ...others] = listOf(fields, 'oob_channels');
  if ((type !== 'oob' && type !== 'email') || others.length > 0) {
    throw new AuthError(400, 'invalid_request', 'authenticator_types must have exactly one of otp, oob');
  }
  if (channel === 'sms') return { kind: 'sms', phoneNumber: requiredField(fields, 'phone_number') };
  if (channel === 'email') return { kind: 'email', email: textField(fields, 'email') ?? user.email ?? '' };
  if (channel === config.settings().vendor_channel) return { kind: 'push' };
  throw new AuthError(400, 'invalid_request', 'oob_channels must have exactly one known channel');
}

/** A list, or the single text that the specification shows. */
function listOf(fields: Fields, name: string): string[] {
  const value = fields[name];
  if (value === undefined || value === null) return [];
  if (typeof value === 'string') return value === '' ? [] : [value];
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value;
  throw new AuthError(400, 'invalid_request', `Invalid parameter: ${name}`);
}

function associationOf({ config }: MfaRoutesDependencies, enrolled: Enrolled): Record<string, unknown> {
  const { authenticator, secret, barcodeUri, oobCode, prompt, recoveryCode } = enrolled;
  const channel = channelOf(authenticator, config.settings().vendor_channel);
  return {
    authenticator_type: channel === undefined ? 'otp' : 'oob',
    // Under both names: the specification's, and the one that SDKs read.
    ...(channel === undefined ? {} : { oob_channels: channel, oob_channel: channel }),
    ...(oobCode === undefined ? {} : { oob_code: oobCode }),
    ...(prompt ? { binding_method: 'prompt' } : {}),
    ...(secret === undefined ? {} : { secret }),
    ...(barcodeUri === undefined ? {} : { barcode_uri: barcodeUri }),
    ...(recoveryCode === undefined ? {} : { recovery_codes: [recoveryCode] }),
    id: authenticator.id,
  };
}

function channelOf({ kind }: Authenticator, vendorChannel: string): string | undefined {
  if (kind === 'sms' || kind === 'email') return kind;
  return kind === 'push' ? vendorChannel : undefined;
}

async function handleList(deps: MfaRoutesDependencies, ctx: Context): Promise<void> {
  const { user } = await bearerOf(deps, ctx, 'read:authenticators');
  const active = await activeAuthenticators(deps, user);
  const begun = (await deps.authenticators.of(user.id)).filter((one) => !one.active);
  const { vendor_channel: vendorChannel } = deps.config.settings();
  ctx.body = [...active, ...begun].map((authenticator) => described(authenticator, vendorChannel));
}

const TYPE = {
  otp: 'otp',
  sms: 'phone',
  email: 'email',
  push: 'push-notification',
  'recovery-code': 'recovery-code',
};

function described(authenticator: Authenticator, vendorChannel: string): Record<string, unknown> {
  const { id, kind, active } = authenticator;
  const channel = channelOf(authenticator, vendorChannel);
  const name = displayName(authenticator);
  return {
    id,
    authenticator_type: channel === undefined ? kind : 'oob',
    active,
    type: TYPE[kind],
    ...(channel === undefined ? {} : { oob_channel: channel, oob_channels: [channel] }),
    ...(name === undefined ? {} : { name }),
  };
}

/** Enough to know it by, not enough to learn it. */
export function displayName({ phone_number: phone, email, name }: Authenticator): string | undefined {
  if (phone !== undefined) return `${'X'.repeat(Math.max(0, phone.length - 5))}${phone.slice(-4)}`;
  if (email === undefined) return name;
  const [local = '', domain = ''] = email.split('@');
  return `${local.slice(0, 1)}${'*'.repeat(Math.max(3, local.length - 1))}@${domain.slice(0, 4)}${'*'.repeat(Math.max(3, domain.length - 4))}`;
}

async function handleRemove(deps: MfaRoutesDependencies, ctx: Context): Promise<void> {
  const { user, clientId, managing } = await bearerOf(deps, ctx, 'remove:authenticators');
  if (managing === undefined)
    throw new AuthError(403, 'insufficient_scope', 'Insufficient scope, expected: remove:authenticators');
  const id = String(ctx.params.id);
  const authenticator = await deps.authenticators.get(id);
  if (authenticator?.user_id !== user.id)
    throw new AuthError(404, 'not_found', 'There is no such authenticator.');
  if (await isProfileEmail(deps, user, authenticator))
    throw new AuthError(400, 'invalid_request', 'The address of the profile stays.');
  await remove(deps, user, managing.token, id);
  deps.events.record({ type: 'gd_unenroll', user_id: user.id, client_id: clientId, ip: ctx.ip });
  ctx.status = 204;
}

/** Removes an authenticator by what the token may do at that moment. @throws AuthError 401 */
async function remove(deps: MfaRoutesDependencies, user: User, token: ApiToken, id: string): Promise<void> {
  const right = await judge(deps, user, token);
  if (right.proved) return deps.authenticators.remove(id, token.id);
  // Who has given no second factor has no say in one that counts, whatever was confirmed just now.
  if (!(await deps.authenticators.removeBegun(id))) throw new AuthError(401, 'access_denied', 'Unauthorized');
}
