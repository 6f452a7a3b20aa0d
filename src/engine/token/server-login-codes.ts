// A login that this server starts itself, for another protocol, ends in an authorization code. It is redeemed here,
// without issuing tokens.
import type Provider from 'oidc-provider';
import { errors } from 'oidc-provider';
import type { AssertionChanges } from '../../capabilities/actions/assertion-methods.ts';
import type { Login } from '../../users/login.ts';
import { connectionOf, credentialVersionOf, factorsOf, presenceOf } from '../session/sessions.ts';

/** The login for which a code was issued. */
export interface CodeLogin
  extends Pick<
    Login,
    'userId' | 'connection' | 'credentialVersion' | 'presence' | 'authTime' | 'amr' | 'acr'
  > {
  /** The session's own id, which all its applications share: the `sid` of `Sessions` and of the logout channels. */
  sessionUid: string;
  /** The user's second factors when the session began, as `SecondFactor.factorsOf` returned them. */
  factors: string;
  /** The resource indicator of the API that the request was for. */
  resource: string | undefined;
  /** The id of the organization that the login is for. */
  organization: string | undefined;
  /** What actions asked for of the assertion that the login ends in. */
  assertion?: AssertionChanges | undefined;
}

/** Returns the login of a code. @param ip the address of the browser that has brought it. */
export function loginOfCode(code: CodeLogin, ip: string): Login {
  const { userId, connection, credentialVersion, presence, authTime, amr, acr } = code;
  return { userId, connection, credentialVersion, presence, authTime, amr, ip, ...(acr && { acr }) };
}

/** What a code must have been issued for. */
interface ServerLoginCode {
  clientId: string;
  redirectUri: string;
  codeChallenge: string;
}

/**
 * Redeems a code, with the checks of the token endpoint (RFC 6749 §4.1.3).
 * @returns undefined when it was issued for another request or used before, or when its session has ended.
 */
export type RedeemServerLoginCode = (
  value: string,
  expected: ServerLoginCode,
) => Promise<CodeLogin | undefined>;

export function serverLoginCodes(provider: Provider): RedeemServerLoginCode {
  return async (value, { clientId, redirectUri, codeChallenge }) => {
    const code = value === '' ? undefined : await provider.AuthorizationCode.find(value);
    const { accountId: userId, sessionUid, authTime } = code ?? {};
    if (
      code === undefined ||
      code.isExpired ||
      code.clientId !== clientId ||
      code.redirectUri !== redirectUri ||
      code.codeChallenge !== codeChallenge ||
      userId === undefined ||
      sessionUid === undefined ||
      authTime === undefined
    ) {
      return undefined;
    }
    try {
      await code.consume();
    } catch (thrown) {
      if (thrown instanceof errors.InvalidGrant) return undefined;
      throw thrown;
    }
    // No tokens will be issued on this grant: only the session says that the user is logged in.
    const grant = await provider.Grant.find(code.grantId ?? '');
    await Promise.all([code.destroy(), grant && provider.Grant.adapter.destroy(grant.jti)]);
    const session = await provider.Session.findByUid(sessionUid);
    if (session === undefined) return undefined;
    return {
      userId,
      connection: connectionOf(session) ?? '',
      credentialVersion: credentialVersionOf(session),
      sessionUid,
      factors: factorsOf(session),
      authTime,
      presence: presenceOf(session),
      amr: code.amr ?? [],
      acr: code.acr,
      resource: typeof code.resource === 'string' ? code.resource : undefined,
      organization: (grant as { organization?: string } | undefined)?.organization,
      assertion: (grant as { actions?: { assertion?: AssertionChanges } } | undefined)?.actions?.assertion,
    };
  };
}
