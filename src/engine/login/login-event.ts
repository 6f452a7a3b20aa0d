// The `event` object of `post-login`: the user, and how and for what they logged in.

import type { Context } from 'koa';
import type { KoaContextWithOIDC, RefreshToken } from 'oidc-provider';
import { clientOf, connectionOf, identityOf, userOf } from '../../capabilities/actions/facts.ts';
import type { UserRole } from '../../capabilities/actions/run-action.ts';
import { isCredentialName } from '../../http/server/application.ts';
import { tenantHostOf } from '../../http/server/request-target.ts';
import type { Frozen } from '../../records/base/record.ts';
import { amrOfFirst, firstMethodOf } from '../../records/users/first-methods.ts';
import { isRoleFor } from '../../records/users/roles.ts';
import { ALL_SECOND_FACTORS } from '../../records/users/second-factors.ts';
import type { Correlation } from '../../runtime/requester.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import type { Asker } from '../../users/asker.ts';
import { type Identity, primaryIdentity } from '../../users/changes.ts';
import type { Transfer } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import type { Organizations } from '../admission/admission.ts';
import { actorOf, transferOf } from '../admission/exchange-context.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import {
  EXTENSIONS_PARAMETER,
  requestedAudience,
  toAudience,
  upstreamParameters,
} from '../base/request-extensions.ts';
import { transactionOf } from '../base/transaction-event.ts';
import { anonymousSessionPart } from '../session/anonymous-sessions.ts';
import { describeRefreshToken } from '../session/refresh-directory.ts';
import { familyKey } from '../session/refresh-families.ts';
import { describeSession } from '../session/session-directory.ts';
import { sessionMetadata } from '../session/session-metadata.ts';

/** A login, with what its actions get to know about it. */
export interface ActionLogin {
  user: User;
  clientId: string;
  /** The connection's name; empty where it is not known. */
  connection: string;
  organization: string | undefined;
  amr: readonly string[];
  /** Epoch seconds. */
  authTime: number | undefined;
  /** As the hosted service calls it, such as `oidc-basic-profile`. */
  protocol: string;
  scopes: readonly string[];
  /** The user's identities before any action ran. */
  identities: readonly Identity[];
  /** Custom methods that actions have recorded in the session. */
  methods?: readonly RecordedMethod[];
  /** The `sid` of the browser's session. */
  sessionId?: string | undefined;
  /** The engine's session, and the refresh token that is exchanged. */
  session?: object;
  refreshToken?: RefreshToken;
  /** The identifier of the API of a refresh. For other requests it is read from the parameters. */
  audience?: string | undefined;
  /** Whether `logins_count` of the user does not include this login yet. */
  isUncounted?: boolean;
}

export interface LoginEventDependencies {
  config: Pick<Config, 'client' | 'connection' | 'organization' | 'settings'>;
  store: Store;
  secondFactor: Pick<SecondFactor, 'enrolledFactors' | 'availabilityOf' | 'includesFactor'>;
  organizations: Pick<Organizations, 'rolesOf'>;
  correlation: Pick<Correlation, 'id'>;
}

/** Builds the event from what is stored now, and returns the roles that it names with it. */
export async function loginEvent(
  deps: LoginEventDependencies,
  ctx: KoaContextWithOIDC,
  login: ActionLogin,
): Promise<{ event: Record<string, unknown>; roles: readonly UserRole[] }> {
  const { user, clientId, connection, organization, identities } = login;
  const { params } = ctx.oidc;
  // Empty where the login does not know its connection.
  const connectionName = connection === '' ? primaryIdentity(identities)?.connection : connection;
  const [client, connectionRecord, roles, enrolledFactors, session, refreshToken] = await Promise.all([
    deps.config.client(clientId),
    connectionName === undefined ? undefined : deps.config.connection(connectionName),
    rolesOf(deps, login),
    deps.secondFactor.enrolledFactors(user),
    sessionPart(deps, login),
    refreshTokenPart(deps, login, transferOf(ctx.oidc.entities.Grant)),
  ]);
  const event = {
    user: { ...userOf(user), enrolledFactors, identities: identities.map(identityOf) },
    client: clientOf(client, clientId),
    ...(connectionRecord && { connection: connectionOf(connectionRecord) }),
    ...(await organizationEvent(deps.config, organization)),
    ...apiOf(login.audience ?? requestedAudience(params)),
    request: engineRequestOf(ctx),
    transaction: {
      ...(login.sessionId !== undefined && { id: deps.correlation.id() }),
      ...transactionOf(deps.config, ctx, { ...login, params: params ?? {} }),
      target_scopes: login.scopes,
      ...exchangePart(ctx),
    },
    ...anonymousSessionPart(params),
    ...transferPart(login.session),
    authentication: {
      methods: [
        ...loginMethods(login, connectionRecord && firstMethodOf(connectionRecord.strategy)),
        ...(login.methods ?? []),
      ],
    },
    authorization: { roles: roles.map(({ name }) => name) },
    stats: { logins_count: (user.logins_count ?? 0) + (login.isUncounted === true ? 1 : 0) },
    security_context: {},
    ...(session && { session }),
    ...(refreshToken && { refresh_token: refreshToken }),
  };
  return { event, roles };
}

const HOUR = 3600;

async function sessionPart(deps: LoginEventDependencies, { sessionId, session }: ActionLogin) {
  if (sessionId === undefined || session === undefined) return undefined;
  const lifetime = deps.config.settings().tenant.session_lifetime * HOUR;
  const metadata = await sessionMetadata(deps, sessionId);
  const shown = describeSession({ ...session }, undefined, { lifetime, metadata });
  const { session_metadata = {}, authentication: _, ...known } = shown;
  // A session that begins with this request is not stored yet: the time of its login is used instead.
  const created_at = known.created_at ?? known.authenticated_at;
  const transfer = transferOf(session);
  const actor = transfer?.act;
  const parent = await parentPart(deps, transfer);
  return { ...known, created_at, metadata: session_metadata, ...(actor && { actor }), ...parent };
}

/** Returns `event.session_transfer_token` in a transferred session. */
function transferPart(session: object | undefined): Record<string, unknown> {
  const transfer = transferOf(session);
  if (transfer === undefined) return {};
  const { clientId: client_id, ip, userAgent: user_agent, scopes = [] } = transfer;
  return { session_transfer_token: { client_id, request: { ip, user_agent, geoip: {} }, scope: scopes } };
}

/**
 * Returns `session_transfer` of a transferred session, and of a refresh token that was issued in one: the refresh
 * token that it was transferred for, as long as that exists, with its present metadata.
 */
async function parentPart(
  { store, config }: Pick<LoginEventDependencies, 'store' | 'config'>,
  transfer: Transfer | undefined,
): Promise<Record<string, unknown>> {
  if (transfer === undefined) return {};
  const { parent } = transfer;
  const family = parent === undefined ? undefined : await store.collection('artifacts').get(parent);
  if (family === undefined) return { session_transfer: {} };
  const { id, refresh_token_metadata: metadata = {} } = await describeRefreshToken(config, family);
  return { session_transfer: { parent_refresh_token: { id, metadata } } };
}

async function refreshTokenPart(
  deps: LoginEventDependencies,
  { refreshToken }: ActionLogin,
  transfer: Transfer | undefined,
) {
  if (refreshToken === undefined) return undefined;
  const family = await deps.store.collection('artifacts').get(familyKey(refreshToken.jti));
  if (family === undefined) return undefined;
  const { refresh_token_metadata = {}, ...known } = await describeRefreshToken(deps.config, family);
  return { ...known, metadata: refresh_token_metadata, ...(await parentPart(deps, transfer)) };
}

/** Returns the actor of a token exchange and the types of the tokens that were exchanged. */
function exchangePart(ctx: KoaContextWithOIDC): Record<string, unknown> {
  const { subject_token_type, actor_token_type } = ctx.oidc.params ?? {};
  const actor = actorOf(ctx);
  return {
    ...(subject_token_type !== undefined && { subject_token_type }),
    ...(actor_token_type !== undefined && { actor_token_type }),
    ...(actor !== undefined && { actor }),
  };
}

/** Returns a user's roles, with those within the organization of the login. */
export async function rolesOf(
  { store, organizations }: Pick<LoginEventDependencies, 'store' | 'organizations'>,
  { user, organization }: Pick<ActionLogin, 'user' | 'organization'>,
): Promise<UserRole[]> {
  const further = await organizations.rolesOf(organization, user.id);
  const ids = new Set([...(user.roles ?? []), ...further]);
  const roles = await Promise.all([...ids].map((id) => store.collection('roles').get(id)));
  return roles.flatMap((role) =>
    role === undefined || !(isRoleFor(role) || further.includes(role.id))
      ? []
      : [{ id: role.id, name: role.name, description: role.description }],
  );
}

// `event.authentication.methods`: the methods of a login, named as the hosted service does.
// docs/understand/decisions/actions-scripts.md#the-first-method-of-a-login-is-named-by-its-connection

/** A custom authentication method that an action has recorded, and when. */
export interface RecordedMethod {
  name: string;
  /** ISO date. */
  timestamp: string;
}

/** A method of a login, with the type of a second factor where the login tells it. */
interface LoginMethod extends RecordedMethod {
  type?: string;
}

/** Returns the type of the second factor that has this value in `amr`; the first one where several have it. */
const secondTypeOf = (word: string) => ALL_SECOND_FACTORS.find(({ amr }) => amr.includes(word))?.type;

// docs/understand/decisions/second-factors.md#a-passkey-counts-as-both-factors
/** Whether the login was by a passkey, which counts as both factors. */
const isPasskey = (amr: readonly string[]) => amr.includes('pop') && amr.includes('user');

/**
 * Returns the methods of a login.
 * @param proof the first method of the login's connection; undefined when the connection is deleted.
 */
function loginMethods(
  { amr, authTime = 0 }: { amr: readonly string[]; authTime: number | undefined },
  proof: string | undefined,
): LoginMethod[] {
  const timestamp = new Date(authTime * 1000).toISOString();
  if (isPasskey(amr)) return ['passkey', 'mfa'].map((name) => ({ name, timestamp }));
  const first = proof ?? (amr.includes('pwd') ? 'pwd' : 'federated');
  const methods: LoginMethod[] = [{ name: first, timestamp }];
  if (!amr.includes('mfa')) return methods;
  const secondMethods = amr.filter((word) => !amrOfFirst(first).includes(word));
  const type = secondMethods.map(secondTypeOf).find((one) => one !== undefined);
  return [...methods, { name: 'mfa', timestamp, ...(type !== undefined && { type }) }];
}

// The parts of the `event` object of actions that describe a request. They contain no secrets.

/**
 * Returns the parameters that actions may read: the application's own, and those of the protocol; no credentials, and not what
 * this server keeps with a request.
 */
function readable(params: Readonly<Record<string, unknown>> | undefined): Record<string, string> {
  const isReadable = (name: string) =>
    name.startsWith('ext-') || (!isCredentialName(name) && name !== EXTENSIONS_PARAMETER);
  return Object.fromEntries(
    Object.entries(params ?? {}).flatMap(([name, value]) =>
      typeof value === 'string' && isReadable(name) ? [[name, value]] : [],
    ),
  );
}

/** Returns `event.request`. @param params the parameters of the query, or of the body of a POST. */
export function requestOf(
  ctx: Context | KoaContextWithOIDC,
  params: Readonly<Record<string, unknown>> | undefined,
): Record<string, unknown> {
  const { method, ip } = ctx;
  const isBody = method === 'POST';
  return {
    ip,
    hostname: tenantHostOf(ctx).hostname,
    method,
    user_agent: ctx.get('user-agent'),
    language: ctx.get('accept-language').split(',')[0] || undefined,
    query: isBody ? {} : readable(params),
    body: isBody ? readable(params) : {},
    // This server does not look up where an address is.
    geoip: {},
  };
}

/**
 * Returns `event.request` for a request to the engine, which keeps unknown parameters (`ext-…`) apart from its own.
 */
export function engineRequestOf(ctx: Context | KoaContextWithOIDC): Record<string, unknown> {
  const { body, params = {} } = (ctx as KoaContextWithOIDC).oidc;
  const { resource, ...own } = params;
  // `resource` is the engine's form of the API; actions get the identifier that the application has sent.
  const audience = typeof resource === 'string' ? { audience: toAudience(resource) } : {};
  return requestOf(ctx, { ...withoutResource(body), ...upstreamParameters(params), ...own, ...audience });
}

function withoutResource(body: unknown): object {
  const { resource: _, ...others } = (body ?? {}) as { resource?: unknown };
  return others;
}

/**
 * Describes a request for scripts and hooks of the tenant.
 * @param params as for {@link requestOf}; undefined for a request whose parameters belong to no protocol.
 */
export function requestContextOf(
  ctx: Context,
  clientId: string | undefined,
  params?: Readonly<Record<string, unknown>>,
): Required<Pick<Asker, 'request'>> & Asker {
  return { clientId, request: requestOf(ctx, params) };
}

/** Returns `event.resource_server`, or nothing when the request is for no API. */
export function apiOf(identifier: string | undefined): Record<string, unknown> {
  return identifier === undefined ? {} : { resource_server: { identifier } };
}

/** Returns `event.organization`, or nothing when the request is for none. */
export async function organizationEvent(
  config: Pick<Config, 'organization'>,
  id: string | undefined,
): Promise<Record<string, unknown>> {
  const found: Frozen<Record<string, unknown>> | undefined =
    id === undefined ? undefined : await config.organization(id);
  if (found === undefined) return {};
  const { name, display_name, metadata = {} } = found;
  return { organization: { id, name, display_name, metadata } };
}

export function recordedMethods(session: object): RecordedMethod[] {
  return (session as { methods?: RecordedMethod[] }).methods ?? [];
}
