// `event` of `post-login`: the user, and how they logged in for what.
import type { KoaContextWithOIDC, RefreshToken } from 'oidc-provider';
import { clientOf, connectionOf, userOf } from '../actions/facts.ts';
import type { Store } from '../store/contract.ts';
import type { Config } from '../tenant/config.ts';
import type { Identity } from '../users/identities.ts';
import type { User } from '../users/user.ts';
import type { Users } from '../users/users.ts';
import { apiOf, engineRequestOf, organizationPart } from './action-event.ts';
import { anonymousSessionPart } from './anonymous-transfer.ts';
import { requestedAudience } from './audience.ts';
import { detailsIn } from './authorization-details.ts';
import { sessionNotes } from './kept-notes.ts';
import type { Organizations } from './organizations.ts';
import { describeRefreshToken } from './refresh-directory.ts';
import { familyKey } from './refresh-families.ts';
import type { SecondFactor } from './second-factor.ts';
import { describeSession } from './session-directory.ts';

/** A custom authentication method that was completed, and when. */
export interface RecordedMethod {
  name: string;
  /** ISO date. */
  timestamp: string;
}

/** A login, as its actions are told of it. */
export interface LoginToJudge {
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
  /** The user's, before any action ran. */
  identities?: readonly Identity[];
  /** Custom methods that actions have recorded in the session. */
  methods?: readonly RecordedMethod[];
  /** The session's own id, in the browser. */
  sessionId?: string | undefined;
  /** The session as the engine has it, and the refresh token that is exchanged. */
  session?: object;
  refreshToken?: RefreshToken;
}

export interface LoginEventDependencies {
  config: Pick<Config, 'client' | 'connection' | 'organization' | 'settings'>;
  store: Store;
  users: Pick<Users, 'identitiesOf'>;
  secondFactor: Pick<SecondFactor, 'enrolled' | 'standingOf' | 'wasGiven'>;
  organizations: Pick<Organizations, 'rolesOf'>;
}

/** The event, read from what is stored now. */
export async function loginEvent(
  deps: LoginEventDependencies,
  ctx: KoaContextWithOIDC,
  login: LoginToJudge,
): Promise<Record<string, unknown>> {
  const { user, clientId, connection, organization } = login;
  const { params } = ctx.oidc;
  const [client, from, roles, identities, enrolledFactors, session, refreshToken] = await Promise.all([
    deps.config.client(clientId),
    connection === '' ? undefined : deps.config.connection(connection),
    roleNames(deps, user, organization),
    login.identities ?? deps.users.identitiesOf(user.id),
    deps.secondFactor.enrolled(user),
    sessionPart(deps, login),
    refreshTokenPart(deps, login),
  ]);
  const timestamp = new Date((login.authTime ?? 0) * 1000).toISOString();
  return {
    user: { ...userOf(user), enrolledFactors, identities: identities.map(identityOf) },
    client: clientOf(client, clientId),
    ...(from && { connection: connectionOf(from) }),
    ...(await organizationPart(deps.config, organization)),
    ...apiOf(requestedAudience(params)),
    request: engineRequestOf(ctx),
    transaction: transactionOf(params, login),
    ...anonymousSessionPart(params),
    authentication: {
      methods: [...login.amr.map((name) => ({ name, timestamp })), ...(login.methods ?? [])],
    },
    authorization: { roles },
    stats: { logins_count: user.logins_count ?? 0 },
    security_context: {},
    ...(session && { session }),
    ...(refreshToken && { refresh_token: refreshToken }),
  };
}

const HOUR = 3600;

async function sessionPart(deps: LoginEventDependencies, { sessionId, session }: LoginToJudge) {
  if (sessionId === undefined || session === undefined) return undefined;
  const lifetime = deps.config.settings().tenant.session_lifetime * HOUR;
  const metadata = await sessionNotes(deps, sessionId);
  const shown = describeSession({ ...session }, undefined, { lifetime, metadata });
  const { session_metadata = {}, authentication: _, ...known } = shown;
  return { ...known, metadata: session_metadata };
}

async function refreshTokenPart(deps: LoginEventDependencies, { refreshToken }: LoginToJudge) {
  const key = refreshToken && familyKey(refreshToken.jti);
  const family = key === undefined ? undefined : await deps.store.collection('artifacts').get(key);
  if (family === undefined) return undefined;
  const { refresh_token_metadata = {}, ...known } = await describeRefreshToken(deps.config, family);
  return { ...known, metadata: refresh_token_metadata };
}

const identityOf = ({ connection, provider, upstream_id, isSocial, profile }: Identity) => ({
  connection,
  provider,
  user_id: upstream_id,
  isSocial,
  ...(profile && { profileData: profile }),
});

/** `event.transaction` of an authorization request. */
export function transactionOf(
  params: Readonly<Record<string, unknown>> | undefined,
  { protocol, scopes }: Pick<LoginToJudge, 'protocol' | 'scopes'>,
): Record<string, unknown> {
  const textOf = (name: string) => (typeof params?.[name] === 'string' ? params[name] : undefined);
  const words = (name: string) => (textOf(name) ?? '').split(' ').filter((one) => one !== '');
  return {
    protocol,
    requested_scopes: scopes,
    acr_values: words('acr_values'),
    ui_locales: words('ui_locales'),
    prompt: words('prompt'),
    redirect_uri: textOf('redirect_uri'),
    response_type: words('response_type'),
    response_mode: textOf('response_mode'),
    state: textOf('state'),
    login_hint: textOf('login_hint'),
    requested_authorization_details: detailsIn(params?.authorization_details),
    metadata: {},
  };
}

/** The names of a user's roles, with those within the organization of the login. */
async function roleNames(
  { store, organizations }: LoginEventDependencies,
  user: User,
  organization: string | undefined,
): Promise<string[]> {
  const ids = new Set([...(user.roles ?? []), ...(await organizations.rolesOf(organization, user.id))]);
  const roles = await Promise.all([...ids].map((id) => store.collection('roles').get(id)));
  return roles.flatMap((role) => (role === undefined ? [] : [role.name]));
}
