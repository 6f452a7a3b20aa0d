// The options of connections to SAML identity providers (`samlp`, `pingfederate`), with the hosted service's names.
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { isHttpAddress } from '../../http/outbound/outbound.ts';
import { pemBlocks } from '../../runtime/pem-blocks.ts';
import { pemKey } from '../../runtime/pem-keys.ts';
import { rsaPublicKey } from './samlp.ts';
import { upstreamOptions, withoutNull } from './upstream.ts';

const BINDINGS = 'urn:oasis:names:tc:SAML:2.0:bindings:';
/** The longest metadata that options may contain, in characters. */
const MAX_METADATA_LENGTH = 102_400;

/** A URL that browsers are sent to, or the base URL of PingFederate. */
const webAddress = z.string().max(2048).refine(isHttpAddress, 'must be an http or https address');

const certificates = z
  .union([z.string().max(MAX_METADATA_LENGTH), z.array(z.string().max(MAX_METADATA_LENGTH)).min(1).max(20)])
  .refine(
    areCertificates,
    'must be certificates (PEM, or base64 of it or of DER) with RSA keys of at least 2048 bits',
  );

const key = z.string().max(16_384).refine(isRsaKey, 'must be a private RSA key of at least 2048 bits (PEM)');
const cert = z.string().max(16_384).refine(isCertificate, 'must be a certificate (PEM)');

const idpInitiated = z.looseObject({
  enabled: z.boolean().default(false),
  client_id: z.string().max(255).optional(),
  client_protocol: z.enum(['oidc', 'oauth2', 'samlp', 'wsfed']).optional(),
  /** Parameters of the authorization request, as a query string. */
  client_authorizequery: z.string().max(2048).optional(),
});

const address = webAddress.optional();
const optionalAddress = z.union([z.literal(''), webAddress]).optional();

export const samlpOptionsSchema = z.preprocess(
  withoutNull,
  z
    .looseObject({
      ...upstreamOptions,
      signInEndpoint: address,
      signOutEndpoint: optionalAddress,
      /** An extension of the hosted options: the URL for logout responses, if the metadata names a separate one. */
      signOutResponseEndpoint: optionalAddress,
      metadataUrl: address,
      metadataXml: z.string().min(1).max(MAX_METADATA_LENGTH).optional(),
      pingFederateBaseUrl: address,
      signingCert: certificates.optional(),
      /** The name of `signingCert` in older exports. */
      cert: certificates.optional(),
      // docs/understand/decisions/saml.md#the-issuer-of-a-saml-connection-comes-from-metadata-or-is-not-compared
      /**
       * An extension of the hosted options: the provider's entity ID. Without it, messages are only verified by
       * signature.
       */
      issuer: z.string().min(1).max(1024).optional(),
      /** The entity ID of Gatehouse for this connection. */
      entityId: z.string().min(1).max(1024).optional(),
      disableSignout: z.boolean().default(false),
      protocolBinding: z
        .enum([`${BINDINGS}HTTP-Redirect`, `${BINDINGS}HTTP-POST`])
        .default(`${BINDINGS}HTTP-Redirect`),
      signSAMLRequest: z.boolean().default(false),
      signatureAlgorithm: z.enum(['rsa-sha1', 'rsa-sha256', 'rsa-sha512']).default('rsa-sha256'),
      digestAlgorithm: z.enum(['sha1', 'sha256', 'sha512']).default('sha256'),
      deflate: z.boolean().default(true),
      requestTemplate: z
        .string()
        .max(16_384)
        .refine(isTemplate, 'must be an AuthnRequest with @@ID@@, which the answer is known by')
        .optional(),
      destinationUrl: optionalAddress,
      recipientUrl: optionalAddress,
      user_id_attribute: z.string().max(1024).optional(),
      fieldsMap: z.record(z.string(), z.union([z.string(), z.array(z.string())])).default({}),
      idpinitiated: z.preprocess(withoutNull, idpInitiated).prefault({}),
      signing_key: z.looseObject({ key, cert }).optional(),
      /** With a profile, content must be encrypted with AES-GCM or with an algorithm listed as exception. */
      assertion_decryption_settings: z
        .looseObject({
          algorithm_profile: z.enum(['v2026-1']),
          algorithm_exceptions: z.array(z.string().max(255)).max(50).default([]),
        })
        .optional(),
      decryptionKey: z.union([key, z.looseObject({ key, cert: cert.optional() })]).optional(),
    })
    .superRefine((options, context) => {
      const { enabled, client_id, client_protocol } = options.idpinitiated;
      if (enabled && client_id === undefined) {
        context.addIssue({ code: 'custom', path: ['idpinitiated', 'client_id'], message: 'is needed' });
      }
      if (enabled && client_protocol === 'wsfed') {
        const message = 'WS-Federation is not spoken here';
        context.addIssue({ code: 'custom', path: ['idpinitiated', 'client_protocol'], message });
      }
    }),
);

/**
 * Returns the members that a login needs and the options lack: exports contain connections that were never finished.
 */
export function missingSamlpOptions(options: Readonly<Record<string, unknown>>): string[] {
  const has = (...names: string[]) => names.some((name) => (options[name] ?? '') !== '');
  if (has('metadataUrl', 'metadataXml')) return [];
  return [
    ...(has('signInEndpoint', 'pingFederateBaseUrl') ? [] : ['signInEndpoint']),
    ...(has('signingCert', 'cert') ? [] : ['signingCert']),
  ];
}

export type SamlpOptions = z.output<typeof samlpOptionsSchema>;

/** A text is one certificate in plain base64, or PEM with several, which may itself be in base64. */
export function certificateTexts(given: string | readonly string[]): string[] {
  return [given].flat().flatMap((text) => {
    // Deploy tools write line ends as the two characters `\n`.
    const plain = String(text).replaceAll('\\n', '\n').trim();
    const pem = pemBlocks(plain);
    if (pem.length > 0) return pem.map((block) => block.text);
    const decoded = Buffer.from(plain, 'base64').toString('latin1');
    return decoded.startsWith('-----BEGIN ') ? certificateTexts(decoded) : [plain];
  });
}

function areCertificates(given: string | string[]): boolean {
  try {
    return certificateTexts(given).map(rsaPublicKey).length > 0;
  } catch {
    return false;
  }
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem.replaceAll('\\n', '\n')).publicKey.asymmetricKeyType === 'rsa';
  } catch {
    return false;
  }
}

function isRsaKey(pem: string): boolean {
  try {
    const { asymmetricKeyType, asymmetricKeyDetails } = pemKey(pem.replaceAll('\\n', '\n'));
    return asymmetricKeyType === 'rsa' && (asymmetricKeyDetails?.modulusLength ?? 0) >= 2048;
  } catch {
    return false;
  }
}

function isTemplate(text: string): boolean {
  return /<(\w+:)?AuthnRequest\s/.test(text) && /\sID="@@ID@@"/.test(text) && !text.includes('<!');
}
