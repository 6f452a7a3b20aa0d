// Dynamic client registration (RFC 7591, OpenID Connect Registration 1.0 §3) and its management by the application itself (RFC
// 7592): how programs that nobody created here, such as agents, become applications of the tenant.
// docs/understand/decisions/clients-keys.md#applications-that-register-themselves-are-kept-apart-and-expire
import type { Context } from 'koa';
import { z } from 'zod';
import { endGranted } from '../../engine/base/granted.ts';
import { presentedToken } from '../../engine/binding/proof-of-possession.ts';
import type { ClientDocuments } from '../../engine/client/client-documents.ts';
import {
  clientOf,
  type KeyCredential,
  keysOf,
  metadataOf,
  placesOf,
  type Registration,
  type RegistrationRules,
  registrationBody,
  registrationFault,
  registrationRules,
} from '../../engine/client/client-metadata.ts';
import { feature } from '../../engine/provider/feature.ts';
import type { CallerTokenReader } from '../../engine/token/api-tokens.ts';
import { AuthError, type BodyFault, oauthShape } from '../../http/errors.ts';
import { limitsOf } from '../../http/limits.ts';
import { type RouteDeclarations, route } from '../../http/server/router.ts';
import { eventTypesOf } from '../../records/base/log-events.ts';
import {
  isRegistrationId,
  type RegistrationRecord,
  UNUSED_SECONDS,
} from '../../records/clients/registrations.ts';
import type { Background } from '../../runtime/background.ts';
import { type Clock, epochSeconds } from '../../runtime/clock.ts';
import { hashSecret, isSameSecret, type Random } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import type { TenantConfig } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';

export interface RegistrationDependencies {
  store: Store;
  config: Pick<TenantConfig, 'settings' | 'clients' | 'customOrigins'>;
  events: Pick<Events, 'record'>;
  clientDocuments: Pick<ClientDocuments, 'keysAt'>;
  background: Pick<Background, 'run'>;
  random: Random;
  clock: Clock;
  wallClock: Clock;
  issuer: string;
  readToken: CallerTokenReader;
}

/** Bytes of a registration; the longest that the schema allows is shorter. */
const MAX_BYTES = 8 * 1024;

const limits = limitsOf({
  registration: {
    capacity: 30,
    perMinute: 10,
    per: 'address',
    where: '`POST /oidc/register`',
    everybody: { capacity: 20, perMinute: 20 },
  },
  registrationManagement: {
    capacity: 60,
    perMinute: 60,
    per: 'address',
    where: '`/oidc/register/{client_id}`',
  },
});

const events = eventTypesOf({
  sdcr: 'An application registered itself, changed its registration or removed it.',
  fdcr: { meaning: 'An application could not register itself.', bounds: 'rejections' },
});

/** A fault of the body is invalid metadata (RFC 7591 §3.2.2). */
function invalid([fault]: readonly BodyFault[]): AuthError {
  const field = fault?.field;
  const error = field === 'redirect_uris' ? 'invalid_redirect_uri' : 'invalid_client_metadata';
  return new AuthError(
    400,
    error,
    field === undefined ? 'The body must be an object' : `Invalid value of ${field}`,
  );
}

const shape = Object.assign((...given: Parameters<typeof oauthShape>) => oauthShape(...given), { invalid });

const answer = z.looseObject({
  client_id: z.string(),
  client_secret: z.string().optional(),
  registration_access_token: z
    .string()
    .describe('For the registration itself, at `registration_client_uri`.'),
  registration_client_uri: z.url(),
});

const own = {
  limit: limits.registrationManagement,
  cors: 'any',
  errors: shape,
} as const;

const routes: RouteDeclarations<RegistrationDependencies> = {
  'POST /oidc/register': route({
    limit: limits.registration,
    cors: 'any',
    errors: shape,
    bodies: { maxBytes: MAX_BYTES },
    bodyTypes: ['json'],
    summary: 'Register an application (RFC 7591), if `flags.enable_dynamic_client_registration` is on',
    answers: { 201: { description: 'The application', body: answer } },
    body: registrationBody,
    handle: register,
  }),
  'GET /oidc/register/:client_id': {
    ...own,
    summary: 'What an application has registered (RFC 7592 §2.1)',
    answers: { 200: { description: 'The application', body: answer } },
    handle: async (deps, ctx) => {
      const record = await authenticated(deps, ctx);
      send(deps, ctx, record);
    },
  },
  'PUT /oidc/register/:client_id': route({
    ...own,
    bodies: { maxBytes: MAX_BYTES },
    bodyTypes: ['json'],
    summary: 'Replace what an application has registered (RFC 7592 §2.2)',
    answers: { 200: { description: 'The application', body: answer } },
    body: registrationBody.extend({
      client_id: z.string().max(100),
      client_secret: z.string().max(512).optional(),
    }),
    handle: replace,
  }),
  'DELETE /oidc/register/:client_id': {
    ...own,
    summary: 'Remove an application (RFC 7592 §2.3)',
    answers: { 204: 'Removed; its tokens end' },
    handle: async (deps, ctx) => {
      const { id } = await authenticated(deps, ctx);
      await deps.store.collection('registrations').delete(id);
      // Its client_id comes back to nobody: what an interruption leaves is worth nothing.
      deps.background.run('the removal of what an application was granted', () => endGranted(deps.store, id));
      deps.events.record({ type: events.sdcr, client_id: id, ip: ctx.ip, description: 'removed' });
      ctx.status = 204;
    },
  },
};

async function register(
  deps: RegistrationDependencies,
  ctx: Context,
  { body }: { body: Registration },
): Promise<void> {
  try {
    await admit(deps, ctx);
    const rules = await registrationRules(deps);
    refuseFaults(body, rules);
    const record = newRecord(deps, body, rules.mode, await keysFor(deps, ctx, body));
    const token = deps.random(32).toString('base64url');
    await deps.store.collection('registrations').insert({ ...record, token_hash: hashSecret(token) });
    // The name is a stranger's text: the log has the id, under which it is found.
    deps.events.record({ type: events.sdcr, client_id: record.id, ip: ctx.ip, description: 'registered' });
    send(deps, ctx, record, token);
    ctx.status = 201;
  } catch (thrown) {
    if (thrown instanceof AuthError && thrown.status < 500)
      deps.events.record({ type: events.fdcr, ip: ctx.ip, description: thrown.error });
    throw thrown;
  }
}

/** Refuses where registration is off, or needs a token of an administrator that the request does not have. */
async function admit(deps: RegistrationDependencies, ctx: Context): Promise<void> {
  const { tenant } = deps.config.settings();
  if (tenant.flags.enable_dynamic_client_registration !== true)
    throw new AuthError(403, 'access_denied', 'Dynamic client registration is not enabled.');
  if (tenant.dynamic_client_registration?.requires_token !== true) return;
  const token = presentedToken(ctx);
  const read = token && (await deps.readToken(ctx, token.value, `${deps.issuer}api/v2/`));
  const isAllowed = read !== undefined && !('fault' in read) && read.scopes.includes('create:clients');
  if (isAllowed && read.ofUser === undefined) return;
  ctx.set('WWW-Authenticate', 'Bearer error="invalid_token"');
  throw new AuthError(
    401,
    'invalid_token',
    'A token for the Management API with create:clients is required.',
  );
}

function refuseFaults(body: Registration, rules: RegistrationRules): void {
  const fault = registrationFault(body, rules);
  if (fault !== undefined) throw new AuthError(400, fault.error, fault.description);
}

function newRecord(
  { random, clock, wallClock }: RegistrationDependencies,
  body: Registration,
  mode: RegistrationRules['mode'],
  { keys, ...remote }: Keys,
): RegistrationRecord {
  const secret = proofOf(body) === 'secret' ? random(48).toString('base64url') : undefined;
  const client = clientOf(body, { clientId: `tpc_${random(24).toString('base64url')}`, mode, secret, keys });
  return {
    id: client.id,
    client,
    metadata: metadataOf(body, client),
    ...remote,
    created_at: new Date(wallClock()).toISOString(),
    expiresAt: epochSeconds(clock) + UNUSED_SECONDS,
  };
}

const isPublic = ({ client }: RegistrationRecord) => client.token_endpoint_auth_method === 'none';

/** How an application proves that it is itself, of which it cannot change the kind. */
function proofOf({ token_endpoint_auth_method: method }: Registration): 'none' | 'secret' | 'keys' {
  if (method === 'none') return 'none';
  return method === 'private_key_jwt' ? 'keys' : 'secret';
}

/** The keys of an application that authenticates with keys, and where they are. */
type Keys = Pick<RegistrationRecord, 'jwks_uri' | 'fresh_until'> & { keys?: readonly KeyCredential[] };

/** @throws AuthError 400 `invalid_client_metadata`, or as {@link ClientDocuments.keysAt}. */
async function keysFor(
  { clientDocuments }: Pick<RegistrationDependencies, 'clientDocuments'>,
  ctx: Context,
  body: Registration,
): Promise<Keys> {
  if (proofOf(body) !== 'keys') return {};
  if (body.jwks_uri !== undefined) {
    const { keys, freshUntil } = await clientDocuments.keysAt(ctx, body.jwks_uri);
    return { keys, jwks_uri: body.jwks_uri, fresh_until: freshUntil };
  }
  const keys = keysOf(body.jwks);
  if (keys !== undefined) return { keys };
  throw new AuthError(400, 'invalid_client_metadata', 'jwks has no usable keys, too many, or private ones');
}

/** Returns the registration that the request has the token of. @throws AuthError 401, the same for one that does not exist */
async function authenticated({ store }: RegistrationDependencies, ctx: Context): Promise<RegistrationRecord> {
  const id = String(ctx.params.client_id);
  const token = presentedToken(ctx);
  const record = isRegistrationId(id) ? await store.collection('registrations').get(id) : undefined;
  const isRight =
    token?.scheme === 'bearer' && isSameSecret(hashSecret(token.value), record?.token_hash ?? '');
  if (record !== undefined && isRight) {
    // It changes nothing meanwhile, and does not remove what administrators look at.
    if (record.blocked_at !== undefined)
      throw new AuthError(403, 'access_denied', 'The application is blocked.');
    return record as RegistrationRecord;
  }
  ctx.set('WWW-Authenticate', 'Bearer error="invalid_token"');
  throw new AuthError(401, 'invalid_token', 'The registration access token is invalid.');
}

// docs/understand/decisions/clients-keys.md#a-registration-stays-where-its-users-have-allowed-it
async function replace(
  deps: RegistrationDependencies,
  ctx: Context,
  { body }: { body: Registration & { client_id: string; client_secret?: string | undefined } },
): Promise<void> {
  const before = await authenticated(deps, ctx);
  const invalidMember = (description: string) => new AuthError(400, 'invalid_client_metadata', description);
  if (body.client_id !== before.id) throw invalidMember('client_id is that of another application');
  const secret = before.client.client_secret;
  if (body.client_secret !== undefined && !isSameSecret(body.client_secret, secret ?? ''))
    throw invalidMember('client_secret cannot be chosen');
  const proof = secret !== undefined ? 'secret' : isPublic(before) ? 'none' : 'keys';
  if (proofOf(body) !== proof)
    throw invalidMember('token_endpoint_auth_method cannot be changed between none, secrets and keys');
  const rules = await registrationRules(deps);
  refuseFaults(body, rules);
  // Of the mode that it was registered in, whatever the tenant's is by now.
  const mode = before.client.third_party_security_mode ?? 'strict';
  const { keys, ...remote } = await keysFor(deps, ctx, body);
  const client = clientOf(body, { clientId: before.id, mode, secret, keys });
  const change = (record: object): RegistrationRecord => {
    const current = record as RegistrationRecord;
    const isShown =
      client.name === current.client.name &&
      placesOf(client.callbacks) === placesOf(current.client.callbacks);
    // Judged in the write: a user may have allowed it something meanwhile.
    if (current.last_used_at !== undefined && !isShown)
      throw invalidMember('users have allowed it under its name and hosts: register another application');
    const { jwks_uri: _, fresh_until: __, ...kept } = current;
    const metadata = metadataOf(body, client);
    return { ...kept, ...remote, client: { ...current.client, ...client }, metadata };
  };
  const after = await deps.store.collection('registrations').update(before.id, change);
  if (after === undefined)
    throw new AuthError(401, 'invalid_token', 'The registration access token is invalid.');
  deps.events.record({ type: events.sdcr, client_id: before.id, ip: ctx.ip, description: 'changed' });
  send(deps, ctx, after as RegistrationRecord);
}

/** Answers with a registration (RFC 7591 §3.2.1). @param token the token for it; by default the one that was sent. */
function send(
  { issuer }: Pick<RegistrationDependencies, 'issuer'>,
  ctx: Context,
  { id, client, metadata, created_at, jwks_uri: uri }: RegistrationRecord,
  token = presentedToken(ctx)?.value,
): void {
  ctx.set('Cache-Control', 'no-store');
  ctx.body = {
    ...metadata,
    // An administrator may have changed these.
    client_name: client.name,
    redirect_uris: client.callbacks,
    ...(uri === undefined && keySetOf(client)),
    client_id_issued_at: Math.floor(Date.parse(created_at) / 1000),
    ...(client.client_secret !== undefined && {
      client_secret: client.client_secret,
      client_secret_expires_at: 0,
    }),
    registration_access_token: token,
    registration_client_uri: `${issuer}oidc/register/${id}`,
  };
}

/** Returns the keys that are registered, unless they are at a `jwks_uri`. */
function keySetOf({ client_authentication_methods: methods }: RegistrationRecord['client']) {
  const keys = methods?.private_key_jwt?.credentials ?? [];
  return keys.length > 0 && { jwks: { keys: keys.map(({ jwk, alg }) => ({ ...jwk, alg })) } };
}

interface RegistrationNeeds extends Omit<RegistrationDependencies, 'config' | 'readToken'> {
  tenantConfig: RegistrationDependencies['config'];
  readCallerToken: CallerTokenReader;
}

export const registration = feature<RegistrationNeeds, unknown, RegistrationDependencies>({
  name: 'registration',
  limits,
  events,
  collections: ['registrations'],
  routes,
  given: (needs) => ({ ...needs, config: needs.tenantConfig, readToken: needs.readCallerToken }),
});
