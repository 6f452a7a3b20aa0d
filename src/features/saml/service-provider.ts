// An application as a SAML service provider: its addon's options, with the hosted service's defaults.
import type { KeyObject } from 'node:crypto';
import { unspecified } from '../../capabilities/saml-messages/name-id.ts';
import { BINDING, CLAIMS } from '../../capabilities/saml-messages/names.ts';
import type {
  DigestAlgorithm,
  SignatureAlgorithm,
  Verifier,
} from '../../capabilities/saml-messages/signature.ts';
import { AuthError } from '../../http/errors.ts';
import { isHttpAddress } from '../../http/outbound/outbound.ts';
import { isPattern } from '../../records/clients/allowed-urls.ts';
import type { Client } from '../../records/collections.ts';
import { rsaPublicKey, type SamlpAddon } from '../../records/connections/samlp.ts';
import type { Config } from '../../tenant/config.ts';

export interface ServiceProvider {
  clientId: string;
  name: string;
  // docs/understand/decisions/saml.md#the-response-is-sent-to-one-of-the-applications-callbacks
  /** Assertion consumer URLs: the callbacks, and the addon's own URLs. */
  acsUrls: readonly string[];
  /** The audience of its assertions; undefined: see audience.ts. */
  audience: string | undefined;
  recipient: string | undefined;
  destination: string | undefined;
  mappings: Readonly<Record<string, readonly string[]>>;
  createUpnClaim: boolean;
  passthroughClaimsWithNoMapping: boolean;
  mapUnknownClaimsAsIs: boolean;
  mapIdentities: boolean;
  signatureAlgorithm: SignatureAlgorithm;
  digestAlgorithm: DigestAlgorithm;
  lifetimeInSeconds: number;
  signResponse: boolean;
  /** Whether the assertion is signed in a signed response, too. @see signsAssertion */
  signAssertion: boolean;
  nameIdentifierFormat: string;
  /** Attributes that are tried for the NameID; undefined: by the format. */
  nameIdentifierProbes: readonly string[] | undefined;
  /** Whether unverified addresses and self-asserted names are released to it, also as NameID. */
  allowUnverifiedIdentifiers: boolean;
  authnContextClassRef: string;
  typedAttributes: boolean;
  includeAttributeNameFormat: boolean;
  /** The URL that logout messages are sent to; undefined for none. */
  logoutUrl: string | undefined;
  /** URLs that its users may be sent to after a logout; compared exactly. */
  logoutAddresses: readonly string[];
  sloEnabled: boolean;
  logoutBinding: 'post' | 'redirect';
  /** Set when its messages must be signed. */
  verifier: Verifier | undefined;
  encryptionKey: KeyObject | undefined;
  /** The key that actions set for a response, in place of the tenant's. */
  signingKey?: { certificate: string; privateKey: KeyObject };
  /** Our entity ID that actions set for a response. */
  issuer?: string | undefined;
}

/** Returns whether the assertion itself is signed: always when the response is not. */
export const signsAssertion = ({
  signResponse,
  signAssertion,
}: Pick<ServiceProvider, 'signResponse' | 'signAssertion'>): boolean => !signResponse || signAssertion;

/** Default attribute names of profile fields. */
const MAPPINGS: Record<string, string> = {
  user_id: `${CLAIMS}nameidentifier`,
  email: `${CLAIMS}emailaddress`,
  name: `${CLAIMS}name`,
  given_name: `${CLAIMS}givenname`,
  family_name: `${CLAIMS}surname`,
  upn: `${CLAIMS}upn`,
};

/** Default lifetime of assertions in seconds. */
const LIFETIME = 3600;

/** @throws AuthError 404 when there is no such application, or it has no `addons.samlp`. */
export async function serviceProvider(config: Config, clientId: string): Promise<ServiceProvider> {
  const client = await config.client(clientId);
  const addon = client?.addons?.samlp;
  if (client === undefined || addon === undefined) {
    throw new AuthError(404, 'not_found', 'There is no SAML application at this address.');
  }
  return { ...identityOptions(client, addon as SamlpAddon), ...contentOptions(addon as SamlpAddon) };
}

function identityOptions(client: Client, addon: SamlpAddon) {
  const { recipient, destination, signingCert, encryptionCert, encryptionPublicKey, logout } = addon;
  const encryption = encryptionCert ?? encryptionPublicKey;
  const addresses = [...client.callbacks, destination, recipient].filter((one) => one !== undefined);
  return {
    clientId: client.client_id,
    name: client.name,
    // A form can only be posted to a web address. Metadata of SAML name addresses, and no patterns of them.
    acsUrls: addresses.filter((url) => isHttpAddress(url) && !isPattern(url)),
    audience: addon.audience,
    recipient,
    destination,
    logoutUrl: logout?.callback,
    logoutAddresses: client.allowed_logout_urls.filter((url) => isHttpAddress(url) && !isPattern(url)),
    sloEnabled: logout?.slo_enabled ?? true,
    logoutBinding: addon.binding === BINDING.redirect ? ('redirect' as const) : ('post' as const),
    verifier:
      signingCert === undefined
        ? undefined
        : { publicKeys: [rsaPublicKey(signingCert)], allowSha1: addon.signatureAlgorithm === 'rsa-sha1' },
    encryptionKey: encryption === undefined ? undefined : rsaPublicKey(encryption),
  };
}

function contentOptions(addon: SamlpAddon) {
  return {
    mappings: mappingsOf(addon),
    createUpnClaim: addon.createUpnClaim ?? true,
    passthroughClaimsWithNoMapping: addon.passthroughClaimsWithNoMapping ?? true,
    mapUnknownClaimsAsIs: addon.mapUnknownClaimsAsIs ?? false,
    mapIdentities: addon.mapIdentities ?? true,
    signatureAlgorithm: addon.signatureAlgorithm ?? ('rsa-sha256' as const),
    digestAlgorithm: addon.digestAlgorithm ?? ('sha256' as const),
    lifetimeInSeconds: addon.lifetimeInSeconds ?? LIFETIME,
    signResponse: addon.signResponse ?? false,
    signAssertion: addon.signAssertion ?? false,
    nameIdentifierFormat: addon.nameIdentifierFormat ?? unspecified.uri,
    nameIdentifierProbes: addon.nameIdentifierProbes,
    allowUnverifiedIdentifiers: addon.allowUnverifiedIdentifiers ?? false,
    authnContextClassRef: addon.authnContextClassRef ?? 'urn:oasis:names:tc:SAML:2.0:ac:classes:unspecified',
    typedAttributes: addon.typedAttributes ?? true,
    includeAttributeNameFormat: addon.includeAttributeNameFormat ?? true,
  };
}

function mappingsOf({ mappings = {} }: SamlpAddon): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries({ ...MAPPINGS, ...mappings }).map(([field, names]) => [field, [names].flat()]),
  );
}
