// What actions of `post-login` may ask for in a SAML response. Signature, encryption and issuer follow the
// application's configuration alone.
import { z } from 'zod';
import { setMember, type Take } from './taking.ts';

const value = z.union([z.string().max(10_000), z.number(), z.boolean()]);

/** The settings by method, with the schema of the argument. */
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
} as const;

type Setting = (typeof SETTINGS)[keyof typeof SETTINGS];

/** What actions asked for in the assertion of this login. */
export interface AssertionAsked {
  /** Options of the SAML addon that differ in this response. */
  settings: { [S in Setting as S[0]]?: z.output<S[1]> };
  /** Attributes by name; null for one that is left out. */
  attributes: Record<string, AssertionValue>;
}

type AssertionValue = z.output<typeof value> | z.output<typeof value>[] | null;

/** Returns the empty request. */
export const nothingOfAssertion = (): AssertionAsked => ({ settings: {}, attributes: {} });

interface WithAssertion {
  login: { assertion: AssertionAsked };
}

const MOST_ATTRIBUTES = 100;
const attribute = z.tuple([z.string().min(1).max(255), z.union([value, z.array(value).max(1000)]).nullish()]);

const setAttribute: Take<WithAssertion> = ({ login: { assertion } }, given) => {
  const [name, set] = Array.isArray(given) ? given : [];
  const read = attribute.safeParse([name, set]);
  if (!read.success || Object.keys(assertion.attributes).length >= MOST_ATTRIBUTES) return false;
  setMember(assertion.attributes, read.data[0], read.data[1] ?? null);
  return true;
};

const setting =
  ([member, schema]: Setting): Take<WithAssertion> =>
  ({ login: { assertion } }, given) => {
    const read = z
      .tuple([schema as z.ZodType])
      .rest(z.unknown())
      .safeParse(given);
    if (read.success) setMember(assertion.settings, member, read.data[0]);
    return read.success;
  };

/** The methods of `api.samlResponse`, by name. */
export const ASSERTION_TAKE: Record<string, Take<WithAssertion>> = {
  'samlResponse.setAttribute': setAttribute,
  ...Object.fromEntries(
    Object.entries(SETTINGS).map(([name, one]) => [`samlResponse.${name}`, setting(one)]),
  ),
};
