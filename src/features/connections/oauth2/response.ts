// The authorization response of an OAuth 2.0 provider (RFC 6749 §4.1.2).
import type { OAuth2Options } from '../../../records/oauth2.ts';
import {
  refuseProviderError,
  type UpstreamDependencies,
  type UpstreamResponse,
  upstreamFault,
} from '../redirect.ts';
import { exchangeCode, type TokenAnswer } from './token.ts';

/** Checks an authorization response and exchanges its code. @throws AuthError by {@link upstreamFault}. */
export async function exchangeAnswer(
  deps: Pick<UpstreamDependencies, 'fetch'>,
  options: OAuth2Options,
  response: UpstreamResponse,
): Promise<TokenAnswer> {
  checkIssuer(options, response.parameters);
  refuseProviderError(response.parameters);
  return exchangeCode(deps, options, response);
}

/**
 * Rejects a response whose `iss` is another provider (mix-up attack, RFC 9207 §2.4). For a connection without an issuer, the
 * origin of its authorization URL is compared.
 * @throws AuthError by {@link upstreamFault}
 */
function checkIssuer(
  { issuer, authorizationURL }: OAuth2Options,
  { iss }: UpstreamResponse['parameters'],
): void {
  if (iss === undefined) return;
  const isSame =
    issuer === undefined ? URL.parse(iss)?.origin === new URL(authorizationURL).origin : iss === issuer;
  if (!isSame) throw upstreamFault('access_denied', 'The answer is of another identity provider.');
}
