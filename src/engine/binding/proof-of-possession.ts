// Sender-constrained access tokens: decides which tokens are bound to a key of the client, and verifies that a
// request with such a token proves the key, by a client certificate (RFC 8705 §3) or by a DPoP proof (RFC 9449).
// All checks of either are here.
import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import {
  type AccessToken,
  type Client,
  type ClientCredentials,
  errors,
  type KoaContextWithOIDC,
} from 'oidc-provider';
import type { ClientCertificates } from '../../capabilities/tls/client-certificates.ts';
import { AuthError } from '../../http/errors.ts';
import type { ResourceServer } from '../../records/collections.ts';
import { isSameSecret, sha256 } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';
import { toAudience } from '../base/requested-audience.ts';
import { applicationSettings } from '../client/applications.ts';
import { refuseNoncompliant } from '../client/compliance.ts';
import { type DpopProof, type DpopProofs, dpopChallenge, dpopProofs } from './dpop.ts';
import type { UsedProofs } from './used-proofs.ts';

/** The key that a token is bound to: its `cnf` claim (RFC 7800 §3.1). */
export interface Confirmation {
  /** The thumbprint of a certificate (RFC 8705 §3.1). */
  'x5t#S256'?: string | undefined;
  /** The thumbprint of a DPoP key (RFC 9449 §6). */
  jkt?: string | undefined;
}

export interface BoundToken {
  /** Undefined for a bearer token. */
  cnf: Confirmation | undefined;
  clientId: string;
}

/**
 * Checks that a request with an access token proves the key that the token is bound to.
 * @throws AuthError 401 `invalid_token`, `invalid_dpop_proof` or `use_dpop_nonce`, with `WWW-Authenticate`.
 */
export type CheckPossession = (ctx: Context, token: string, bound: BoundToken) => Promise<void>;

/** The keys that a token request proves; its tokens are bound to them. */
export interface ProvenKeys {
  dPoP?: DpopProof | undefined;
}

export interface ProofOfPossession {
  check: CheckPossession;
  /**
   * Reads the proofs of a token request, before its code or token is used up.
   * @throws errors.InvalidDpopProof, errors.UseDpopNonce (RFC 9449 §5, §8).
   */
  readProofs(ctx: KoaContextWithOIDC): Promise<ProvenKeys>;
}

interface PossessionDependencies {
  baseUrl: string;
  config: Pick<Config, 'customOrigins'>;
  certificates: Pick<ClientCertificates, 'of'>;
  usedProofs: UsedProofs;
}

// docs/decisions/clients-keys.md#all-our-endpoints-check-the-binding-of-a-token
/** Makes the checks for all our endpoints that read access tokens, and for the token endpoint. */
export function proofOfPossession(
  provider: Provider,
  { baseUrl, certificates, config, usedProofs }: PossessionDependencies,
): ProofOfPossession {
  const proofs = dpopProofs(provider, usedProofs, { baseUrl, config });
  /** The keys that token requests have proved, for access tokens in their bodies. */
  const proved = new WeakMap<IncomingMessage, ProvenKeys>();
  /** The tokens whose keys requests have proved. The router checks some tokens twice, but a proof is used once. */
  const checked = new WeakMap<IncomingMessage, { token: string; jkt: string | undefined }>();
  return {
    readProofs: async (ctx) => {
      const keys = { dPoP: await proofs.readInEngine(ctx) };
      proved.set(ctx.req, keys);
      return keys;
    },
    check: async (ctx, token, { cnf, clientId }) => {
      const { 'x5t#S256': thumbprint, jkt } = cnf ?? {};
      if (cnf !== undefined && thumbprint === undefined && jkt === undefined)
        throw refusal(ctx, 'Bearer', 'The access token is bound to an unknown key');
      if (cnf !== undefined && ctx.query.access_token !== undefined)
        throw refusal(
          ctx,
          jkt === undefined ? 'Bearer' : 'DPoP',
          'A bound access token does not come in a query',
        );
      if (thumbprint !== undefined && !presentsCertificate(certificates.of(ctx.req), thumbprint))
        throw refusal(ctx, 'Bearer', 'The access token is bound to another client certificate');
      const request = proved.get(ctx.req);
      const earlier = checked.get(ctx.req);
      if (earlier?.token === token && earlier.jkt === jkt) return;
      if (request === undefined) {
        await checkDpop(proofs, ctx, token, { jkt, clientId });
        checked.set(ctx.req, { token, jkt });
      } else if (jkt !== undefined && request.dPoP?.thumbprint !== jkt)
        throw refusal(ctx, 'DPoP', 'The access token is bound to another key');
    },
  };
}

/**
 * Requires a token that is bound to a DPoP key to come with the scheme `DPoP` and a proof of the key, and any other
 * not to (RFC 9449 §7.1). With the scheme `Bearer`, in a body or in a query, a stolen token could be used without
 * its key (§7.2).
 */
async function checkDpop(
  proofs: DpopProofs,
  ctx: Context,
  token: string,
  { jkt, clientId }: { jkt: string | undefined; clientId: string },
): Promise<void> {
  const presented = presentedToken(ctx);
  const isByScheme = presented?.scheme === 'dpop' && presented.value === token;
  if (jkt === undefined && !isByScheme) return;
  if (jkt === undefined) throw refusal(ctx, 'DPoP', 'The access token is not bound to a DPoP key');
  if (!isByScheme) throw refusal(ctx, 'DPoP', 'The access token is bound to a DPoP key');
  try {
    const proof = await proofs.read(ctx, token);
    if (proof === undefined) throw new errors.InvalidDpopProof('The DPoP header is missing');
    if (proof.thumbprint !== jkt) throw refusal(ctx, 'DPoP', 'The access token is bound to another key');
    await proofs.recordUse(proof, clientId);
  } catch (thrown) {
    if (!(thrown instanceof errors.OIDCProviderError)) throw thrown;
    const { error, error_description: description = 'The DPoP proof is invalid' } = thrown;
    throw refusal(ctx, 'DPoP', description, error);
  }
}

/** An access token in the `Authorization` header, by its scheme (RFC 6750 §2.1; RFC 9449 §7.1). */
interface PresentedToken {
  scheme: 'bearer' | 'dpop';
  value: string;
}

/**
 * Reads the access token from the `Authorization` header.
 * @returns undefined for no header, and for one of another scheme or form.
 */
export function presentedToken(ctx: Context): PresentedToken | undefined {
  const [, scheme, value] = /^(Bearer|DPoP) ([^\s]+)$/i.exec(ctx.get('Authorization')) ?? [];
  if (scheme === undefined || value === undefined) return undefined;
  return { scheme: scheme.toLowerCase() === 'dpop' ? 'dpop' : 'bearer', value };
}

function refusal(ctx: Context, scheme: 'Bearer' | 'DPoP', description: string, error = 'invalid_token') {
  const bearer = `Bearer error="${error}", error_description="${description}"`;
  ctx.set('WWW-Authenticate', scheme === 'DPoP' ? dpopChallenge({ error, description }) : bearer);
  return new AuthError(401, error, description);
}

function presentsCertificate(shown: ReturnType<ClientCertificates['of']>, thumbprint: string): boolean {
  if (shown === undefined || 'fault' in shown) return false;
  return isSameSecret(thumbprintOf(shown.certificate.raw), thumbprint);
}

/** Returns the SHA-256 thumbprint of a certificate (RFC 8705 §3.1). @param der the certificate, DER. */
export function thumbprintOf(der: Uint8Array): string {
  return sha256(der);
}

/** Returns the key that an opaque access token is bound to. */
export function confirmationOfToken(token: object): Confirmation | undefined {
  const { 'x5t#S256': thumbprint, jkt } = token as Confirmation;
  return thumbprint === undefined && jkt === undefined ? undefined : { 'x5t#S256': thumbprint, jkt };
}

/** Returns the `cnf` of a verified token's claims. */
export function confirmationOf({ cnf }: Readonly<Record<string, unknown>>): Confirmation | undefined {
  return typeof cnf === 'object' && cnf !== null ? cnf : undefined;
}

/** Returns the confirmation of tokens for the keys that their request has proved. */
export function confirmationOfKeys({ dPoP }: ProvenKeys): Confirmation {
  return { jkt: dPoP?.thumbprint };
}

/**
 * Returns how a token for an API has to be bound; undefined when it need not be.
 * @param api undefined for a token that is for no API.
 */
function requiredBinding(
  client: Client,
  api: ResourceServer | undefined,
): 'dpop' | 'mtls' | 'any' | undefined {
  const { requirePossession, isPublic } = applicationSettings(client);
  const { mechanism, required, required_for: whom } = api?.proof_of_possession ?? {};
  if (mechanism !== undefined && required === true && (whom !== 'public_clients' || isPublic))
    return mechanism;
  return requirePossession ? 'any' : undefined;
}

/**
 * Refuses to issue an unbound token where one bound to a key is required.
 * @throws errors.InvalidDpopProof; errors.InvalidRequest where no DPoP proof would help.
 */
export function refuseUnbound(
  ctx: KoaContextWithOIDC | undefined,
  client: Client,
  api: ResourceServer | undefined,
  { jkt, 'x5t#S256': thumbprint }: Confirmation,
): void {
  const binding = requiredBinding(client, api);
  if (binding === undefined) return;
  if (binding !== 'mtls' && jkt !== undefined) return;
  if (binding !== 'dpop' && thumbprint !== undefined) return;
  if (binding === 'mtls')
    throw new errors.InvalidRequest('the API takes tokens bound to a client certificate alone');
  // Tokens from /authorize are never bound.
  if (ctx?.oidc.params?.response_type !== undefined)
    throw new errors.InvalidRequest(
      'an access token that is bound to a key is had from the token endpoint alone',
    );
  throw new errors.InvalidDpopProof('DPoP proof is required');
}

/** Refuses to issue an access token that must be bound to a key and is not. */
export async function refuseUnboundToken(
  { config }: { config: Config },
  ctx: KoaContextWithOIDC,
  token: AccessToken | ClientCredentials,
): Promise<void> {
  const resource = token.resourceServer?.identifier();
  const api = resource === undefined ? undefined : await config.resourceServer(toAudience(resource));
  const { client } = token as { client?: Client };
  if (client === undefined) return;
  const { jkt, 'x5t#S256': thumbprint } = token;
  refuseNoncompliant(client, api, { dpop: jkt !== undefined, mtls: thumbprint !== undefined });
  refuseUnbound(ctx, client, api, token);
}
