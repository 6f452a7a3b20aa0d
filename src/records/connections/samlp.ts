// `addons.samlp` of a client: its options as a SAML service provider, with the hosted service's names. The schema
// adds no defaults, so that an export returns what was written. src/features/saml applies the defaults; docs/do/saml.md
// lists them.

import type { KeyObject } from 'node:crypto';
import { z } from 'zod';
import { isHttpAddress } from '../../http/outbound/outbound.ts';
import { pemKey, publicPemKey } from '../../runtime/pem-keys.ts';

/** The maximum length of a key or certificate that an action sets, in characters. */
export const MAX_PEM_LENGTH = 10_000;

/**
 * Returns the public key of a certificate or key in PEM, or of a certificate in plain base64, as metadata contains
 * it.
 * @throws Error if it cannot be parsed, or is not an RSA key of at least 2048 bits
 */
export function rsaPublicKey(text: string): KeyObject {
  return checkedRsa(publicPemKey(wrapped(text)));
}

/** As {@link rsaPublicKey}, for a private key in PEM that is not encrypted. */
export function rsaPrivateKey(text: string): KeyObject {
  const key = pemKey(withLineEnds(text));
  if (key.type !== 'private') throw new Error('the key is not a private key');
  return checkedRsa(key);
}

/** Returns a certificate in base64 of its DER. @throws Error if it cannot be parsed, or has no such key */
export function rsaCertificate(text: string): string {
  rsaPublicKey(text);
  const [, base64] = /^-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]*)-----END/.exec(wrapped(text)) ?? [];
  if (base64 === undefined) throw new Error('not a certificate');
  return base64.replaceAll(/\s/g, '');
}

function checkedRsa(key: KeyObject): KeyObject {
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  if (key.asymmetricKeyType !== 'rsa' || bits < 2048) throw new Error('not an RSA key of at least 2048 bits');
  // OpenSSL uses none that is larger.
  if (bits > 16_384) throw new Error('an RSA key of more than 16,384 bits');
  return key;
}

/** Deploy tools write line ends as the two characters `\n`. */
const withLineEnds = (text: string) => text.replaceAll('\\n', '\n').trim();

function wrapped(text: string): string {
  const pem = withLineEnds(text);
  return pem.startsWith('-----')
    ? pem
    : `-----BEGIN CERTIFICATE-----\n${pem.replaceAll(/\s/g, '').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----`;
}

const certificate = z
  .string()
  .refine(isRsa, 'must be a certificate (PEM) with an RSA key of at least 2048 bits');

function isRsa(text: string): boolean {
  try {
    rsaPublicKey(text);
    return true;
  } catch {
    return false;
  }
}

/** A URL that a form can be posted to. */
const webAddress = z.string().refine(isHttpAddress, 'must be an http or https address');

const addonSchema = z.looseObject({
  audience: z.string().min(1).optional(),
  recipient: webAddress.optional(),
  destination: webAddress.optional(),
  issuer: z.string().min(1).max(1024).optional(),
  /** Members of the profile, with the attributes that each becomes. */
  mappings: z.record(z.string(), z.union([z.string().min(1), z.array(z.string().min(1))])).optional(),
  createUpnClaim: z.boolean().optional(),
  passthroughClaimsWithNoMapping: z.boolean().optional(),
  mapUnknownClaimsAsIs: z.boolean().optional(),
  mapIdentities: z.boolean().optional(),
  signatureAlgorithm: z.enum(['rsa-sha1', 'rsa-sha256', 'rsa-sha512']).optional(),
  digestAlgorithm: z.enum(['sha1', 'sha256', 'sha512']).optional(),
  lifetimeInSeconds: z.number().int().min(1).max(86_400).optional(),
  signResponse: z.boolean().optional(),
  /** An extension of the hosted options: the assertion is signed as well as the response. */
  signAssertion: z.boolean().optional(),
  nameIdentifierFormat: z.string().min(1).optional(),
  nameIdentifierProbes: z.array(z.string().min(1)).optional(),
  /** An extension of the hosted options: unverified addresses are sent to the application as well. */
  allowUnverifiedIdentifiers: z.boolean().optional(),
  authnContextClassRef: z.string().min(1).optional(),
  typedAttributes: z.boolean().optional(),
  includeAttributeNameFormat: z.boolean().optional(),
  logout: z.looseObject({ callback: webAddress.optional(), slo_enabled: z.boolean().optional() }).optional(),
  /** The binding of logout messages: one of LOGOUT_BINDINGS, or HTTP-POST. */
  binding: z.string().max(255).optional(),
  /** If set, the service provider's messages must be signed with this key. */
  signingCert: certificate.optional(),
  /** If either is set, assertions are encrypted for this key. */
  encryptionCert: certificate.optional(),
  encryptionPublicKey: certificate.optional(),
});

export const samlpSchema = addonSchema.refine(
  ({ signAssertion, signResponse }) => signAssertion !== false || signResponse === true,
  { path: ['signAssertion'], message: 'false needs signResponse: true, or nothing would be signed' },
);

export type SamlpAddon = z.output<typeof samlpSchema>;

const LOGOUT_BINDINGS: readonly string[] = [
  'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST',
  'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect',
];

/** Returns a warning about a binding that is not supported. @param name the application's */
export function bindingWarnings(name: string, addon: Pick<SamlpAddon, 'binding'> | undefined): string[] {
  const { binding } = addon ?? {};
  if (binding === undefined || LOGOUT_BINDINGS.includes(binding)) return [];
  return [`${binding} is no binding of logout messages here: ${name} is sent them by HTTP-POST`];
}
