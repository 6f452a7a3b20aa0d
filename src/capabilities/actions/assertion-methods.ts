// What actions of `post-login` may ask for in a SAML response. They may replace keys and choose among strong algorithms;
// weak ones are for the application's configuration alone.
import { z } from 'zod';
import {
  MAX_PEM_LENGTH,
  rsaCertificate,
  rsaPrivateKey,
  rsaPublicKey,
} from '../../records/connections/samlp.ts';
import { type ApiMethod, setMember } from './api-method.ts';

const value = z.union([z.string().max(10_000), z.number(), z.boolean()]);

/** A key or certificate that can be used. Reading it here makes the action fail that sets another text. */
const pem = (read: (text: string) => unknown) =>
  z
    .string()
    .max(MAX_PEM_LENGTH)
    .refine((text) => {
      try {
        read(text);
        return true;
      } catch {
        return false;
      }
    });
const publicPem = pem(rsaPublicKey);

const SETTINGS = {
  setAudience: ['audience', z.string().min(1).max(1024)],
  setRecipient: ['recipient', z.string().max(2048)],
  setDestination: ['destination', z.string().max(2048)],
  setCreateUpnClaim: ['createUpnClaim', z.boolean()],
  setPassthroughClaimsWithNoMapping: ['passthroughClaimsWithNoMapping', z.boolean()],
  setMapUnknownClaimsAsIs: ['mapUnknownClaimsAsIs', z.boolean()],
  setMapIdentities: ['mapIdentities', z.boolean()],
  setLifetimeInSeconds: ['lifetimeInSeconds', z.int().min(1).max(86_400)],
  setNameIdentifierFormat: ['nameIdentifierFormat', z.string().min(1).max(255)],
  setNameIdentifierProbes: ['nameIdentifierProbes', z.array(z.string().max(255)).min(1).max(20)],
  setAuthnContextClassRef: ['authnContextClassRef', z.string().min(1).max(255)],
  setTypedAttributes: ['typedAttributes', z.boolean()],
  setIncludeAttributeNameFormat: ['includeAttributeNameFormat', z.boolean()],
  setIssuer: ['issuer', z.string().min(1).max(1024)],
  setRelayState: ['relayState', z.string().max(2048)],
  setSignResponse: ['signResponse', z.boolean()],
  // SHA-1 and CBC are published values, too.
  setSignatureAlgorithm: ['signatureAlgorithm', z.enum(['rsa-sha256', 'rsa-sha512'])],
  setDigestAlgorithm: ['digestAlgorithm', z.enum(['sha256', 'sha512'])],
  setEncryptionAlgorithm: ['encryptionAlgorithm', z.literal('aes256-gcm')],
  setCert: ['cert', pem(rsaCertificate)],
  setKey: ['key', pem(rsaPrivateKey)],
  setSigningCert: ['signingCert', publicPem],
  setEncryptionCert: ['encryptionCert', publicPem],
  setEncryptionPublicKey: ['encryptionPublicKey', publicPem],
} as const;

type Setting = (typeof SETTINGS)[keyof typeof SETTINGS];

export interface AssertionChanges {
  /** Options of the SAML addon that differ in this response. */
  settings: { [S in Setting as S[0]]?: z.output<S[1]> };
  /** Attributes by name; null for one that is left out. */
  attributes: Record<string, AssertionValue>;
}

type AssertionValue = z.output<typeof value> | z.output<typeof value>[] | null;

/** Returns the empty request. */
export const noAssertionChanges = (): AssertionChanges => ({ settings: {}, attributes: {} });

interface AssertionOutcome {
  login: { assertion: AssertionChanges };
}

const MAX_ATTRIBUTES = 100;
const attributeArguments = z.tuple([
  z.string().min(1).max(255),
  z.union([value, z.array(value).max(1000)]).nullish(),
]);

const setAttribute: ApiMethod<AssertionOutcome> = ({ login: { assertion } }, args) => {
  const [name, attributeValue] = Array.isArray(args) ? args : [];
  const parsed = attributeArguments.safeParse([name, attributeValue]);
  if (!parsed.success || Object.keys(assertion.attributes).length >= MAX_ATTRIBUTES) return false;
  setMember(assertion.attributes, parsed.data[0], parsed.data[1] ?? null);
  return true;
};

const setSetting =
  ([member, schema]: Setting): ApiMethod<AssertionOutcome> =>
  ({ login: { assertion } }, args) => {
    const parsed = z
      .tuple([schema as z.ZodType])
      .rest(z.unknown())
      .safeParse(args);
    if (parsed.success) setMember(assertion.settings, member, parsed.data[0]);
    return parsed.success;
  };

/** The methods of `api.samlResponse`, by name. */
export const ASSERTION_METHODS: Record<string, ApiMethod<AssertionOutcome>> = {
  'samlResponse.setAttribute': setAttribute,
  ...Object.fromEntries(
    Object.entries(SETTINGS).map(([name, one]) => [`samlResponse.${name}`, setSetting(one)]),
  ),
};
