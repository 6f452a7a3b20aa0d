// Codes that are ours: a login that we asked for ourselves, for another protocol, ends in a code that we take in
// without tokens.
import type Provider from 'oidc-provider';
import { errors } from 'oidc-provider';
import type { AssertionAsked } from '../actions/assertion-asked.ts';
import type { Login } from '../users/login.ts';
import { connectionOf, credentialVersionOf, factorsOf, isTimeUnproved } from './browser-login.ts';

/** The login that a code stands for. */
export interface OwnCodeLogin
  extends Pick<
    Login,
    'userId' | 'connection' | 'credentialVersion' | 'authTime' | 'isTimeUnproved' | 'amr' | 'acr'
  > {
  /** The session's own id, which all its applications share: the `sid` of `Sessions` and of the logout channels. */
  sessionUid: string;
  /** What stood for the user's second factors when the session began (`SecondFactor.factorsOf`). */
  factors: string;
  /** The resource indicator of the API that the request was for. */
  resource: string | undefined;
  /** The id of the organization that the login is for. */
  organization: string | undefined;
  /** What actions asked for of the assertion that the login ends in. */
  assertion?: AssertionAsked | undefined;
}

/** What a code must be of. */
interface OwnCode {
  clientId: string;
  redirectUri: string;
  codeChallenge: string;
}

/**
 * Uses a code up, in the manner of the token endpoint (RFC 6749 §4.1.3).
 * @returns undefined when it is not of that request, was used before, or its session is over by now.
 */
export type RedeemOwnCode = (value: string, expected: OwnCode) => Promise<OwnCodeLogin | undefined>;

/** Takes in the codes of one provider. */
export function redeemOwnCodes(provider: Provider): RedeemOwnCode {
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
    // Nothing is ever issued for it: the session alone says that the user is logged in.
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
      isTimeUnproved: isTimeUnproved(session),
      amr: code.amr ?? [],
      acr: code.acr,
      resource: typeof code.resource === 'string' ? code.resource : undefined,
      organization: (grant as { organization?: string } | undefined)?.organization,
      assertion: (grant as { actions?: { assertion?: AssertionAsked } } | undefined)?.actions?.assertion,
    };
  };
}
