// Describes the login of a request for its actions.
import type { KoaContextWithOIDC, RefreshToken } from 'oidc-provider';
import type { Users } from '../../users/users.ts';
import { loginRequirements } from '../admission/login-requirements.ts';
import { toAudience } from '../base/requested-audience.ts';
import type { OwnCallbacks } from '../client/own-callbacks.ts';
import { connectionOf } from '../session/user-session.ts';
import type { ActionLogin } from './login-event.ts';
import type { RecordedMethod } from './login-methods.ts';

/** Returns the `protocol` of an authorization request, as the hosted service names it for actions. */
function profileOf(responseType: unknown): string {
  const types = String(responseType).split(' ');
  if (!types.includes('code')) return 'oidc-implicit-profile';
  return types.length === 1 ? 'oidc-basic-profile' : 'oidc-hybrid-profile';
}

const scopesOf = (ctx: KoaContextWithOIDC) => [...ctx.oidc.requestParamScopes];

/**
 * Describes the login from which an authorization request would be answered.
 * @returns undefined when nobody is logged in.
 */
export async function loginOfSession(
  {
    users,
    ownCallbacks,
  }: { users: Pick<Users, 'get' | 'identitiesOf'>; ownCallbacks: Pick<OwnCallbacks, 'protocolOf'> },
  ctx: KoaContextWithOIDC,
): Promise<ActionLogin | undefined> {
  const { session, client, params } = ctx.oidc;
  const user = session?.accountId === undefined ? undefined : await users.get(session.accountId);
  if (session === undefined || user === undefined || client === undefined) return undefined;
  const { acrValues: _, ...wanted } = loginRequirements(params);
  return {
    user,
    clientId: client.clientId,
    connection: connectionOf(session) ?? '',
    organization: wanted.organization,
    amr: session.amr ?? [],
    authTime: session.loginTs,
    protocol: ownCallbacks.protocolOf(String(params?.redirect_uri)) ?? profileOf(params?.response_type),
    scopes: scopesOf(ctx),
    sessionId: session.uid,
    session,
    identities: await users.identitiesOf(user.id),
    methods: recordedMethods(session),
  };
}

/** Describes the login for which a refresh token was issued. @returns undefined when its user is deleted. */
export async function loginOfGrant(
  { users }: { users: Pick<Users, 'get' | 'identitiesOf'> },
  ctx: KoaContextWithOIDC,
): Promise<ActionLogin | undefined> {
  const { RefreshToken: token, Grant: grant, Client: client } = ctx.oidc.entities;
  const user = token === undefined ? undefined : await users.get(token.accountId);
  if (token === undefined || user === undefined || client === undefined) return undefined;
  const { amr = [], organization, connection = '' } = (grant ?? {}) as Partial<ActionLogin>;
  return {
    user,
    clientId: client.clientId,
    connection,
    organization,
    amr,
    authTime: token.authTime,
    protocol: 'oauth2-refresh-token',
    scopes: [...token.scopes],
    refreshToken: token,
    audience: audienceOfRefresh(ctx, token),
    identities: await users.identitiesOf(user.id),
  };
}

/**
 * Returns the API of a refresh: the one that it names (RefreshTargets), or else the one that the token was issued
 * for.
 */
function audienceOfRefresh({ oidc }: KoaContextWithOIDC, { resource }: RefreshToken): string | undefined {
  const [indicator] = [oidc.params?.resource ?? resource ?? []].flat();
  return typeof indicator === 'string' ? toAudience(indicator) : undefined;
}

/** Returns the custom authentication methods that actions have recorded in a session. */
export function recordedMethods(session: object): RecordedMethod[] {
  return (session as { methods?: RecordedMethod[] }).methods ?? [];
}
