// Codes that are ours: a login that we asked for ourselves, for another protocol, ends in a code that we take in
// without tokens.
import type Provider from 'oidc-provider';
import { errors } from 'oidc-provider';
import type { Login } from '../users/login.ts';

/** Where logins end that we ask for ourselves: addresses of ours that no application may use. */
export interface OwnCallbacks {
  /** Whether logins to an application are asked for so. */
  isFor(client: { addons?: object | undefined }): boolean;
  /** The callback of an application. */
  of(clientId: string): string;
  /** Whether an address is one, of any application, however it is written. */
  has(address: string): boolean;
}

/** The login that a code stands for. */
export interface OwnCodeLogin extends Pick<Login, 'userId' | 'authTime' | 'amr' | 'acr'> {
  /** The session's own id, which all its applications share: the `sid` of `Sessions` and of the logout channels. */
  sessionUid: string;
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
    await Promise.all([
      code.destroy(),
      code.grantId === undefined ? undefined : provider.Grant.adapter.destroy(code.grantId),
    ]);
    if ((await provider.Session.findByUid(sessionUid)) === undefined) return undefined;
    return { userId, sessionUid, authTime, amr: code.amr ?? [], acr: code.acr };
  };
}
