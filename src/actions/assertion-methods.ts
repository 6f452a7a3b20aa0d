// What actions of `post-login` may ask for in a SAML response. Signature, encryption and issuer follow the
// application's configuration alone.
import { z } from 'zod';
import { type ApiMethod, setMember } from './api-method.ts';

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
