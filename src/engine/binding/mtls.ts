// Mutual TLS (RFC 8705): clients that authenticate by their certificate, and the settings that the engine needs for it.
import type { X509Certificate } from 'node:crypto';
import type { Configuration, KoaContextWithOIDC } from 'oidc-provider';
import type { ClientCertificates } from '../../capabilities/tls/client-certificates.ts';
import { isSameName, subjectOf } from '../../records/distinguished-name.ts';
import { isSameSecret } from '../../runtime/secrets.ts';
import { applicationSettings } from '../client/applications.ts';
import type { CertificateRules } from '../client/certificate-rules.ts';
import { certificateRefusal } from './certificate-binding.ts';
import { thumbprintOf } from './proof-of-possession.ts';

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
