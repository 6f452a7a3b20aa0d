// Sender-constrained access tokens: which are bound to a key of the client, and whether a request that brings one proves
// that key. By a client certificate (RFC 8705 §3) or by a DPoP proof (RFC 9449); each is asked here, and nowhere else.
import type { Context } from 'koa';
import { isSameSecret, sha256 } from '../runtime/secrets.ts';
import type { ClientCertificates } from '../tls/client-certificates.ts';

/** What a token is bound to: its `cnf` claim (RFC 7800 §3.1). */
export interface Confirmation {
  /** The thumbprint of a certificate (RFC 8705 §3.1). */
  'x5t#S256'?: string | undefined;
  /** The thumbprint of a DPoP key (RFC 9449 §6). */
  jkt?: string | undefined;
}

/**
 * Asks a request that brings an access token for the proof that the token needs.
 * @param cnf what the token is bound to; undefined for a bearer token.
 * @returns why it is not good; undefined where it is.
 */
export type ProofFault = (
  ctx: Context,
  token: string,
  cnf: Confirmation | undefined,
) => Promise<string | undefined>;

interface ProofDependencies {
  certificates: Pick<ClientCertificates, 'of'>;
}

/** The check of all our endpoints that read access tokens. */
export function proofFault({ certificates }: ProofDependencies): ProofFault {
  return async (ctx, _token, cnf) => {
    if (cnf === undefined) return undefined;
    const { 'x5t#S256': thumbprint, jkt } = cnf;
    if (thumbprint === undefined && jkt === undefined) return 'The access token is bound to an unknown key';
    if (thumbprint !== undefined && !showsCertificate(certificates.of(ctx.req), thumbprint))
      return 'The access token is bound to another client certificate';
    return jkt === undefined ? undefined : 'The DPoP proof is missing';
  };
}

function showsCertificate(shown: ReturnType<ClientCertificates['of']>, thumbprint: string): boolean {
  if (shown === undefined || 'fault' in shown) return false;
  return isSameSecret(thumbprintOf(shown.certificate.raw), thumbprint);
}

/** The SHA-256 thumbprint of a certificate (RFC 8705 §3.1). @param der */
export function thumbprintOf(der: Uint8Array): string {
  return sha256(der);
}

/** What an opaque access token is bound to. */
export function confirmationOfToken(token: object): Confirmation | undefined {
  const { 'x5t#S256': thumbprint, jkt } = token as Confirmation;
  return thumbprint === undefined && jkt === undefined ? undefined : { 'x5t#S256': thumbprint, jkt };
}

/** The `cnf` of a verified token's claims. */
export function confirmationOf({ cnf }: Readonly<Record<string, unknown>>): Confirmation | undefined {
  return typeof cnf === 'object' && cnf !== null ? cnf : undefined;
}
