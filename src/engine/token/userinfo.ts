// GET and POST /userinfo (docs/do/claims.md; OpenID Connect Core §5.3). The engine's own refuses tokens that SDKs send:
// JWTs and tokens bound to an API (docs/reference/wire/token.md).
import { randomUUID } from 'node:crypto';
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { AccessToken, Grant } from 'oidc-provider';
import { signJwt } from '../../capabilities/signing/jwt.ts';
import type { Signing } from '../../capabilities/signing/signing.ts';
import { bodyFields } from '../../http/server/body.ts';
import { profileOf } from '../../records/clients/compliance-levels.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Config } from '../../tenant/config.ts';
import { standardClaims } from '../../users/profile.ts';
import type { User } from '../../users/user.ts';
import type { Users } from '../../users/users.ts';
import type { Organizations } from '../admission/admission.ts';
import { admissionError } from '../admission/admission.ts';
import type { ReadAhead } from '../base/commit.ts';
import { OIDC_SCOPES } from '../base/request-extensions.ts';
import type { PublishedKeys } from '../base/signed-tokens.ts';
import { ISSUED_AT_MS, isTokenEnded, readOwnToken } from '../base/signed-tokens.ts';
import {
  type CheckPossession,
  type Confirmation,
  confirmationOf,
  confirmationOfToken,
  dpopChallenge,
  presentedToken,
} from '../binding/proof-of-possession.ts';
import type { CustomClaims } from '../claims/claims.ts';
import { updatedAtFor, userAtIssue } from '../claims/claims.ts';
import type { Sessions } from '../session/sessions.ts';
import { userinfoAudience } from './access-token.ts';

export interface UserinfoDependencies extends UserinfoTokenDependencies {
  config: Config;
  users: Users;
  organizations: Pick<Organizations, 'claims' | 'isMember'>;
  customClaims: CustomClaims;
  checkPossession: CheckPossession;
  signing: Pick<Signing, 'sign' | 'current'>;
}

/** A refusal (RFC 6750 §3.1). */
interface Refusal {
  status: 400 | 401 | 403;
  error?: 'invalid_request' | 'invalid_token' | 'insufficient_scope';
  description?: string;
}

const UNKNOWN: Refusal = {
  status: 401,
  error: 'invalid_token',
  description: 'The access token is invalid or expired',
};

/** A JWE (RFC 7516 §7.1). */
const ENCRYPTED: Refusal = {
  status: 401,
  error: 'invalid_token',
  description: 'The access token is encrypted for its API, which alone can read it',
};

const refusalOf = (token: string) => (token.split('.').length === 5 ? ENCRYPTED : UNKNOWN);

const NO_OPENID: Refusal = {
  status: 403,
  error: 'insufficient_scope',
  description: 'The scope openid is required',
};

export interface Userinfo {
  /**
   * Verifies the access token, and answers with the error when it is missing, invalid, or lacks `openid`.
   * @returns the user's id, as the key of the endpoint's rate limit; undefined when it has answered.
   */
  authenticate(ctx: Context): Promise<string | undefined>;
  /** Answers with the profile after `authenticate`. */
  respond(ctx: Context): Promise<void>;
}

/** Makes the two steps of `/userinfo`. The rate limit is taken in between. */
export function userinfo(deps: UserinfoDependencies): Userinfo {
  const tokens = new WeakMap<object, PresentedAccessToken>();
  const tokenOf = (ctx: Context): PresentedAccessToken => {
    const token = tokens.get(ctx);
    if (token === undefined) throw new Error('userinfo: authenticate has not run');
    return token;
  };
  const readToken = userinfoTokens(deps);
  return {
    authenticate: async (ctx) => {
      const token = accessToken(ctx);
      const found = 'status' in token ? token : ((await readToken(token.value)) ?? refusalOf(token.value));
      if ('status' in found) return void refuse(ctx, found);
      // Tokens of an application end when it is removed or blocked.
      if ((await deps.config.client(found.clientId)) === undefined) return void refuse(ctx, UNKNOWN);
      if (!('status' in token)) await deps.checkPossession(ctx, token.value, found);
      if (!found.scopes.includes('openid')) return void refuse(ctx, NO_OPENID);
      tokens.set(ctx, found);
      return found.userId;
    },
    respond: async (ctx) => {
      const token = tokenOf(ctx);
      const user = token.user ?? (await deps.users.get(token.userId));
      if (user === undefined || admissionError(user) !== undefined) return refuse(ctx, UNKNOWN);
      const client = await deps.config.client(token.clientId);
      const updatedAt = updatedAtFor(
        deps.config,
        client && { standardClaims: client.standard_claims, oidcConformant: client.oidc_conformant },
      );
      ctx.set('Cache-Control', 'private, no-store, no-cache, must-revalidate');
      if (client !== undefined && isFapi1(client)) ctx.set(INTERACTION_ID, interactionId(ctx));
      const then = userAtIssue(user, token);
      const all = token.claims.length === 0 ? {} : standardClaims(then, OIDC_SCOPES, { updatedAt });
      const { userId, clientId, organization } = token;
      const claims = {
        // Spread first, so that no custom claim replaces one of ours.
        ...(await deps.customClaims.of({ to: 'userinfo', userId, clientId, organization })),
        sub: user.id,
        ...Object.fromEntries(Object.entries(all).filter(([claim]) => token.claims.includes(claim))),
        ...standardClaims(then, token.scopes, { updatedAt }),
        // After the profile, so that no attribute of a user can replace it.
        ...(await membership(deps.organizations, token)),
      };
      const alg = client?.userinfo_signed_response_alg;
      if (alg === undefined) {
        ctx.body = claims;
        return;
      }
      // OpenID Connect Core §5.3.2. Without `iat` and `exp` it cannot pass for an ID token.
      const named = { ...claims, iss: deps.provider.issuer, aud: clientId };
      ctx.type = 'application/jwt';
      ctx.body = await signJwt(deps.signing, { alg, typ: 'JWT' }, named);
    },
  };
}

/** Returns the claims about a token's organization, while the user is a member of it. */
async function membership(
  organizations: UserinfoDependencies['organizations'],
  { organization, userId }: PresentedAccessToken,
): Promise<object> {
  if (organization === undefined || !(await organizations.isMember(organization, userId))) return {};
  return organizations.claims(organization);
}

/** Returns the token, which has to be sent by exactly one method (RFC 6750 §2), or the refusal. */
function accessToken(ctx: Context): { value: string } | Refusal {
  const inHeader = presentedToken(ctx);
  if (ctx.get('Authorization') !== '' && inHeader === undefined) {
    return {
      status: 400,
      error: 'invalid_request',
      description: 'The Authorization header must be "Bearer <token>" or "DPoP <token>"',
    };
  }
  const inBody = ctx.method === 'POST' ? bodyFields(ctx).access_token : undefined;
  const inQuery = ctx.query.access_token;
  const sentTokens = [inHeader?.value, inBody, ...(Array.isArray(inQuery) ? inQuery : [inQuery])].filter(
    Boolean,
  );
  const [token] = sentTokens;
  if (token === undefined) return { status: 401 };
  if (sentTokens.length > 1) {
    return { status: 400, error: 'invalid_request', description: 'The access token must be given once' };
  }
  return { value: token };
}

// docs/understand/decisions/tokens.md#a-401-of-userinfo-is-the-plain-text-unauthorized
/** Answers 401 as plain text, with the reason in the header (docs/reference/wire/token.md). */
function refuse(ctx: Context, { status, error, description }: Refusal): void {
  ctx.status = status;
  ctx.append(
    'WWW-Authenticate',
    ['Bearer realm="Users"', error && `error="${error}"`, description && `error_description="${description}"`]
      .filter(Boolean)
      .join(', '),
  );
  // Without a token both schemes are offered: the request does not tell which one the client uses (RFC 9449 §7.1).
  if (error === undefined) ctx.append('WWW-Authenticate', dpopChallenge({}));
  ctx.type = 'text';
  ctx.body = status === 401 ? 'Unauthorized' : (description ?? 'Unauthorized');
}

/** FAPI 1.0 Part 1 §6.2.1 (11): returned as it was sent, or a new one. */
const INTERACTION_ID = 'x-fapi-interaction-id';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const isFapi1 = (client: Parameters<typeof profileOf>[0]) =>
  profileOf(client)?.standards.includes('fapi1') === true;

function interactionId(ctx: Context): string {
  const sentId = ctx.get(INTERACTION_ID);
  return UUID.test(sentId) ? sentId : randomUUID();
}

// Verifies the access tokens that `/userinfo` accepts: opaque ones, and JWTs that name it as an audience.

interface UserinfoTokenDependencies {
  provider: Provider;
  keys: PublishedKeys;
  clock: Clock;
  ahead: ReadAhead;
  users: Pick<Users, 'get' | 'credentialVersion'>;
  sessions: Pick<Sessions, 'isOpen' | 'grantOf'>;
}

/** A verified access token, opaque or JWT. */
interface PresentedAccessToken {
  userId: string;
  clientId: string;
  scopes: string[];
  /** Epoch seconds. */
  issuedAt: number;
  /** Epoch milliseconds, for a token that was issued in the second of a change of its user's address. */
  issuedAtMs?: number | undefined;
  /** Individually requested claims (OIDC Core §5.5). */
  claims: string[];
  /** The id of the organization that the token is for. */
  organization?: string | undefined;
  cnf: Confirmation | undefined;
  /** The user's record, where it was read with the token. */
  user?: User | undefined;
}

/** Makes the reader of access tokens for `/userinfo`. It returns undefined for a token that is not valid. */
function userinfoTokens(deps: UserinfoTokenDependencies) {
  const { provider, keys, clock, ahead, users, sessions } = deps;
  const audience = userinfoAudience(provider.issuer);
  const readJwt = async (token: string): Promise<PresentedAccessToken | undefined> => {
    const payload = await readOwnToken({ issuer: provider.issuer, keys, clock }, token, { audience });
    const user = payload && (await users.get(String(payload.sub)));
    if (payload === undefined || user === undefined) return undefined;
    if (await isTokenEnded({ users, ...sessions }, user, payload)) return undefined;
    return {
      userId: user.id,
      clientId: String(payload.azp ?? payload.client_id),
      scopes: String(payload.scope ?? '').split(' '),
      issuedAt: Number(payload.iat),
      issuedAtMs: milliseconds(payload[ISSUED_AT_MS]),
      // A JWT for an API does not contain the requested claims.
      claims: [],
      organization: typeof payload.org_id === 'string' ? payload.org_id : undefined,
      cnf: confirmationOf(payload),
      user,
    };
  };
  const readOpaque = async (token: string): Promise<PresentedAccessToken | undefined> => {
    const found = await provider.AccessToken.find(token);
    if (found?.accountId === undefined || found.clientId === undefined) return undefined;
    // The grant may have been revoked while the token was being issued.
    const grant = await provider.Grant.find(found.grantId ?? '');
    if (grant === undefined) return undefined;
    return {
      userId: found.accountId,
      clientId: found.clientId,
      scopes: [...found.scopes],
      issuedAt: found.iat ?? 0,
      issuedAtMs: milliseconds(found.extra?.[ISSUED_AT_MS]),
      claims: allowedClaims(grant, found),
      organization: (grant as { organization?: string }).organization,
      cnf: confirmationOfToken(found),
      user: await ahead.user(found.accountId),
    };
  };
  return (token: string): Promise<PresentedAccessToken | undefined> =>
    token.split('.').length === 3 ? readJwt(token) : ahead.run(() => readOpaque(token));
}

const milliseconds = (value: unknown) => (typeof value === 'number' ? value : undefined);

/** Returns the individually requested claims that the grant covers; the others have no consent. */
function allowedClaims(grant: Grant, { claims }: AccessToken): string[] {
  const requested = Object.keys(claims?.userinfo ?? {});
  return requested.length === 0 ? [] : grant.getOIDCClaimsFiltered(new Set(requested));
}
