// Verifies subject tokens (RFC 8693 §2.1): tokens of ours for whose user an application asks for something else.
// They are not used up.
import type { Context } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';
import { AuthError } from '../../http/errors.ts';
import type { User } from '../../users/user.ts';
import { admissionError } from '../admission/admission.ts';
import { transferOf } from '../admission/transferred-session.ts';
import type { CheckPossession } from '../binding/proof-of-possession.ts';
import { ACCESS_TOKEN, type ExchangeDependencies, subjectOf } from './token-exchange.ts';

const REFRESH_TOKEN = 'urn:ietf:params:oauth:token-type:refresh_token';

/** The subject token of a token request, and the application that sends it. */
interface SubjectToken {
  ctx: Context;
  clientId: string;
  /** The token type (RFC 8693 §3), of an access or a refresh token. */
  type: string;
  token: string;
}

/**
 * Returns the user of a refresh token of the application, or of an access token that was issued to it or is for its
 * API.
 * @throws AuthError 400 `invalid_request` for another type, `invalid_grant` for a token that is not valid or whose
 *   user is not admitted; 401 as {@link CheckPossession} does.
 */
export type ReadSubjectToken = (presented: SubjectToken) => Promise<User>;

/** Makes the reader of a tenant. */
export function subjectTokenReader(
  deps: ExchangeDependencies & { checkPossession: CheckPossession },
): ReadSubjectToken {
  return async (presented) => {
    const subject = await subjectFrom(deps, presented);
    const user = subject && (await deps.users.get(subject.userId));
    if (user === undefined || admissionError(user) !== undefined) throw invalidToken();
    const { organization, connection } = subject ?? {};
    // A token for an organization is valid only while its user is a member.
    if (organization !== undefined && !(await deps.isMember(organization, user.id, connection)))
      throw invalidToken();
    return user;
  };
}

/** The user and organization of a token, and the connection of its login, where it is known. */
interface TokenSubject {
  userId: string;
  organization?: string | undefined;
  connection?: string | undefined;
}

async function subjectFrom(
  deps: ExchangeDependencies & { checkPossession: CheckPossession },
  { ctx, clientId, type, token }: SubjectToken,
): Promise<TokenSubject | undefined> {
  if (type === REFRESH_TOKEN) return subjectOfRefreshToken(deps, ctx, clientId, token);
  if (type !== ACCESS_TOKEN)
    throw new AuthError(400, 'invalid_request', 'The subject_token_type is not supported.');
  const subject = await subjectOf(deps, clientId, type, token);
  // What it is exchanged for cannot name the actor, who would be taken for the user.
  return subject.claims.act === undefined ? subject : undefined;
}

/**
 * Verifies a refresh token. One that was used before is refused, but its family is not revoked: otherwise a thief
 * could log the user out.
 */
async function subjectOfRefreshToken(
  { checkPossession }: { checkPossession: CheckPossession },
  ctx: Context,
  clientId: string,
  value: string,
): Promise<TokenSubject | undefined> {
  const { provider } = (ctx as KoaContextWithOIDC).oidc;
  const token = value === '' ? undefined : await provider.RefreshToken.find(value);
  if (token === undefined || token.clientId !== clientId || token.isExpired || token.consumed)
    return undefined;
  const grant = await provider.Grant.find(token.grantId ?? '');
  if (grant === undefined || grant.isExpired || grant.clientId !== clientId) return undefined;
  if (grant.accountId !== token.accountId) return undefined;
  // A refresh token of a transferred session ends with that session, which is only checked when it is refreshed.
  if (transferOf(grant) !== undefined) return undefined;
  const { jkt, 'x5t#S256': thumbprint } = token;
  if (jkt !== undefined || thumbprint !== undefined)
    await checkPossession(ctx, value, { clientId, cnf: { jkt, 'x5t#S256': thumbprint } });
  const { organization, connection } = grant as { organization?: string; connection?: string };
  return { userId: token.accountId, organization, connection };
}

/** One error for every invalid token, so that it does not tell which check failed. */
function invalidToken(): AuthError {
  return new AuthError(400, 'invalid_grant', 'The subject_token is not good for this client.');
}
