// The `event` object of `post-login`: the user, and how and for what they logged in.
import type { KoaContextWithOIDC, RefreshToken } from 'oidc-provider';
import { clientOf, connectionOf, identityOf, userOf } from '../../capabilities/actions/facts.ts';
import type { UserRole } from '../../capabilities/actions/run-action.ts';
import { firstMethodOf } from '../../records/first-methods.ts';
import { isRoleFor } from '../../records/roles.ts';
import type { Correlation } from '../../runtime/requester.ts';
import type { Store } from '../../store/contract.ts';
import type { Config } from '../../tenant/config.ts';
import { type Identity, primaryIdentity } from '../../users/changes.ts';
import type { Transfer } from '../../users/login.ts';
import type { User } from '../../users/user.ts';
import { actorOf } from '../admission/exchange-context.ts';
import type { Organizations } from '../admission/organizations.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import { transferOf } from '../admission/transferred-session.ts';
import { requestedAudience } from '../base/requested-audience.ts';
import { transactionOf } from '../base/transaction-event.ts';
import { anonymousSessionPart } from '../session/anonymous-transfer.ts';
import { describeRefreshToken } from '../session/refresh-directory.ts';
import { familyKey } from '../session/refresh-families.ts';
import { describeSession } from '../session/session-directory.ts';
import { sessionMetadata } from '../session/session-metadata.ts';
import { apiOf, engineRequestOf, organizationEvent } from './action-event.ts';
import { loginMethods, type RecordedMethod } from './login-methods.ts';

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
  // Grants of releases that did not store the connection lack it.
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
  const key = refreshToken && familyKey(refreshToken.jti);
  const family = key === undefined ? undefined : await deps.store.collection('artifacts').get(key);
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
