// Sender-constrained access tokens: which are bound to a key of the client, and whether a request that brings one proves
// that key. By a client certificate (RFC 8705 §3) or by a DPoP proof (RFC 9449); each is asked here, and nowhere else.
import type { Context } from 'koa';
import {
  type AccessToken,
  type Client,
  type ClientCredentials,
  errors,
  type KoaContextWithOIDC,
  type RefreshToken,
} from 'oidc-provider';
import { isSameSecret, sha256 } from '../runtime/secrets.ts';
import type { Config } from '../tenant/config.ts';
import type { ClientCertificates } from '../tls/client-certificates.ts';
import { applicationSettings } from './applications.ts';
import { toAudience } from './audience.ts';

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

/** Binds an access token that is about to be stored. @throws errors.InvalidRequest where the proof is missing. */
export type BindToken = (
  ctx: KoaContextWithOIDC | undefined,
  token: AccessToken | ClientCredentials,
) => Promise<void>;

/**
 * Asks for the proof that the access token of a refresh will need, before the refresh token is used up.
 * @throws errors.InvalidRequest where it is missing.
 */
export type RequireProof = (ctx: KoaContextWithOIDC, token: RefreshToken) => Promise<void>;

type Mechanism = 'mtls' | 'dpop';

/** What a token has to be bound to. */
interface Binding {
  /** The API's; any will do where it says nothing. */
  mechanism: Mechanism | undefined;
  isRequired: boolean;
}

interface BindingDependencies {
  config: Pick<Config, 'resourceServer'>;
  certificates: Pick<ClientCertificates, 'of'>;
}

/** What makes sender-constrained tokens of those that have to be, or can be. */
export function boundTokens(deps: BindingDependencies): { bind: BindToken; requireProof: RequireProof } {
  const { certificates } = deps;
  const certificateOf = (ctx: KoaContextWithOIDC) => {
    // A browser's certificate says nothing of the application that it was sent from.
    if (ctx.oidc.params?.response_type !== undefined) return undefined;
    const shown = certificates.of((ctx as unknown as Context).req);
    if (shown !== undefined && 'fault' in shown) throw certificateRefusal(shown.fault);
    return shown?.certificate;
  };
  return {
    bind: async (ctx, token) => {
      const client = ctx?.oidc.client;
      if (ctx === undefined || client === undefined) return;
      const binding = await bindingOf(deps, client, token.resourceServer?.identifier());
      const isWanted =
        binding.mechanism === 'mtls' || (binding.mechanism === undefined && binding.isRequired);
      const certificate = isWanted && !token.isSenderConstrained() ? certificateOf(ctx) : undefined;
      if (certificate !== undefined) token.setThumbprint('x5t', certificate as never);
      refuseUnbound(binding, boundBy(token));
    },
    requireProof: async (ctx, token) => {
      const { params, client } = ctx.oidc;
      if (client === undefined) return;
      const resource = params?.resource ?? token.resource;
      const binding = await bindingOf(deps, client, typeof resource === 'string' ? resource : undefined);
      if (!binding.isRequired) return;
      const shown = ctx.get('DPoP') === '' && certificateOf(ctx) !== undefined ? 'mtls' : undefined;
      refuseUnbound(binding, ctx.get('DPoP') === '' ? shown : 'dpop');
    },
  };
}

function boundBy(token: object): Mechanism | undefined {
  const { 'x5t#S256': thumbprint, jkt } = token as Confirmation;
  if (jkt !== undefined) return 'dpop';
  return thumbprint === undefined ? undefined : 'mtls';
}

async function bindingOf(
  { config }: BindingDependencies,
  client: Client,
  resource: string | undefined,
): Promise<Binding> {
  const { requiresProof } = applicationSettings(client);
  const api = resource === undefined ? undefined : await config.resourceServer(toAudience(resource));
  const { mechanism, required = false, required_for: whose = 'all_clients' } = api?.proof_of_possession ?? {};
  const kind = client.clientAuthMethod === 'none' ? 'public_clients' : 'confidential_clients';
  const isRequired = requiresProof || (required && (whose === 'all_clients' || whose === kind));
  return { mechanism, isRequired };
}

/** @param proved what the request proves a key by. */
function refuseUnbound({ mechanism, isRequired }: Binding, proved: Mechanism | undefined): void {
  if (!isRequired || (proved !== undefined && (mechanism ?? proved) === proved)) return;
  const wanted = { mtls: 'a client certificate', dpop: 'a DPoP proof' };
  const named = mechanism === undefined ? `${wanted.mtls} or ${wanted.dpop}` : wanted[mechanism];
  throw new errors.InvalidRequest(
    `Access tokens are bound to a key of the client, which proves it by ${named}`,
  );
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

/** RFC 6749 §5.2, with what the owner of the certificate can mend. */
export function certificateRefusal(fault: string): errors.CustomOIDCProviderError {
  const refusal = new errors.CustomOIDCProviderError('invalid_client', fault);
  return Object.assign(refusal, { status: 401, statusCode: 401 });
}
