// Access tokens that are bound to the certificate of the request that got them (RFC 8705 §3).
import type { X509Certificate } from 'node:crypto';
import {
  type AccessToken,
  type Client,
  type ClientCredentials,
  type Configuration,
  errors,
  type KoaContextWithOIDC,
  type RefreshToken,
} from 'oidc-provider';
import type { ClientCertificates } from '../../capabilities/tls/client-certificates.ts';
import { isSameName, subjectOf } from '../../records/clients/distinguished-name.ts';
import type { ResourceServer } from '../../records/collections.ts';
import { isSameSecret } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';
import { toAudience } from '../base/request-extensions.ts';
import { applicationSettings, type CertificateRules } from '../client/applications.ts';
import { type Confirmation, refuseUnbound, thumbprintOf } from './proof-of-possession.ts';

/** Binds an access token that is about to be stored. */
export type BindToken = (
  ctx: KoaContextWithOIDC | undefined,
  token: AccessToken | ClientCredentials,
) => Promise<void>;

interface BindingDependencies {
  config: Pick<Config, 'resourceServer'>;
  certificates: Pick<ClientCertificates, 'of'>;
}

// docs/understand/decisions/clients-keys.md#a-certificate-at-authorize-binds-nothing
/**
 * Returns the certificate that a client shows to the token endpoint. At /authorize a certificate is the browser's
 * and does not identify the application.
 * @throws errors.CustomOIDCProviderError `invalid_client` for a certificate that is not valid.
 */
function presentedCertificate(
  { certificates }: Pick<BindingDependencies, 'certificates'>,
  ctx: KoaContextWithOIDC,
): X509Certificate | undefined {
  if (ctx.oidc.params?.response_type !== undefined) return undefined;
  const presented = certificates.of(ctx.req);
  if (presented !== undefined && 'fault' in presented) throw certificateRefusal(presented.fault);
  return presented?.certificate;
}

/**
 * Returns `invalid_client` (RFC 6749 §5.2) with a description that tells the owner of the certificate what is
 * wrong.
 */
function certificateRefusal(fault: string): errors.CustomOIDCProviderError {
  const refusal = new errors.CustomOIDCProviderError('invalid_client', fault);
  return Object.assign(refusal, { status: 401, statusCode: 401 });
}

/**
 * Makes the function that binds access tokens to certificates: for APIs that require it, and for applications that
 * get only bound tokens.
 */
export function certificateBinding(deps: BindingDependencies): BindToken {
  return async (ctx, token) => {
    const client = ctx?.oidc.client;
    if (ctx === undefined || client === undefined || token.isSenderConstrained()) return;
    const api = await apiOf(deps, token.resourceServer?.identifier());
    const certificate = bindsToCertificate(client, api) ? presentedCertificate(deps, ctx) : undefined;
    if (certificate !== undefined) token.setThumbprint('x5t', certificate);
  };
}

function bindsToCertificate(client: Client, api: ResourceServer | undefined): boolean {
  const { mechanism } = api?.proof_of_possession ?? {};
  const { profile, requirePossession } = applicationSettings(client);
  if (profile?.possession === 'mtls') return true;
  return mechanism === undefined ? requirePossession : mechanism === 'mtls';
}

/** Refuses a refresh whose access token would have to be bound and is not, before the refresh token is used up. */
export async function refuseUnboundRefresh(
  deps: BindingDependencies,
  ctx: KoaContextWithOIDC,
  { client, token }: { client: Client; token: RefreshToken },
): Promise<void> {
  const resource = ctx.oidc.params?.resource ?? token.resource;
  const api = await apiOf(deps, typeof resource === 'string' ? resource : undefined);
  const jkt = ctx.get('DPoP') === '' ? undefined : 'proved before';
  refuseUnbound(ctx, client, api, { jkt, ...certificateConfirmation(deps, ctx, { client, api }) });
}

/**
 * Returns the confirmation of tokens for an API that are bound to the certificate of their request; empty when they
 * are not.
 */
export function certificateConfirmation(
  deps: Pick<BindingDependencies, 'certificates'>,
  ctx: KoaContextWithOIDC,
  { client, api }: { client: Client; api: ResourceServer | undefined },
): Confirmation {
  const certificate = bindsToCertificate(client, api) ? presentedCertificate(deps, ctx) : undefined;
  return certificate === undefined ? {} : { 'x5t#S256': thumbprintOf(certificate.raw) };
}

async function apiOf(
  { config }: BindingDependencies,
  resource: string | undefined,
): Promise<ResourceServer | undefined> {
  return resource === undefined ? undefined : config.resourceServer(toAudience(resource));
}

// Mutual TLS (RFC 8705): clients that authenticate by their certificate, and the settings that the engine needs for it.

/** The engine's `features.mTLS`. */
export function mutualTls({
  certificates,
}: {
  certificates: Pick<ClientCertificates, 'of'>;
}): NonNullable<NonNullable<Configuration['features']>['mTLS']> {
  const presented = (ctx: KoaContextWithOIDC) => {
    const found = certificates.of(ctx.req);
    if (found !== undefined && 'fault' in found) throw certificateRefusal(found.fault);
    return found;
  };
  return {
    enabled: true,
    certificateBoundAccessTokens: true,
    selfSignedTlsClientAuth: true,
    tlsClientAuth: true,
    getCertificate: (ctx) => presented(ctx)?.certificate,
    certificateAuthorized: (ctx) =>
      rulesOf(ctx)?.is === 'registered' || presented(ctx)?.isCaVerified === true,
    certificateSubjectMatches: (ctx) => {
      const certificate = presented(ctx)?.certificate;
      const rules = rulesOf(ctx);
      return certificate !== undefined && rules !== undefined && isAllowed(rules, certificate);
    },
  };
}

function rulesOf(ctx: KoaContextWithOIDC): CertificateRules | undefined {
  const { client } = ctx.oidc;
  return client === undefined ? undefined : applicationSettings(client).certificates;
}

function isAllowed(rules: CertificateRules, { raw }: X509Certificate): boolean {
  if (rules.is === 'registered') {
    const thumbprint = thumbprintOf(raw);
    return rules.thumbprints.filter((one) => isSameSecret(one, thumbprint)).length > 0;
  }
  const subject = subjectOf(raw);
  return rules.subjects.some((one) => isSameName(one, subject));
}
