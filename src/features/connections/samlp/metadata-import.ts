// Reads the metadata of an identity provider (SAML Metadata §2.4.3). Its signature is not verified, because no key for it is
// configured: the metadata is trusted because of where it comes from.

import { BINDING, NS } from '../../../capabilities/saml-messages/names.ts';
import { parseXml, type XmlReader } from '../../../capabilities/saml-messages/reader.ts';
import { METADATA } from '../../../capabilities/saml-messages/scan.ts';
import {
  attribute,
  badMessage,
  descendantsOf,
  isNamed,
  textOf,
  type XmlElement,
} from '../../../capabilities/saml-messages/xml.ts';
import { isHttpAddress } from '../../../http/outbound/outbound.ts';
import { rsaPublicKey } from '../../../records/connections/samlp.ts';

/** Metadata, named as the options of a connection. */
export interface ProviderMetadata {
  issuer: string;
  signInEndpoint: string;
  signOutEndpoint?: string;
  /** The URL for LogoutResponses, if it differs from `signOutEndpoint`. */
  signOutResponseEndpoint?: string;
  /** Certificates, PEM. */
  signingCert: string[];
}

/** The metadata that connections have, or name by its URL. Logins and messages read it again and again, so it is cached. */
export interface SamlMetadata {
  /** @throws AuthError 400 if it is not metadata. */
  in(text: string): Promise<ProviderMetadata>;
  /**
   * Returns the metadata at a URL, fetched at most once an hour.
   * @param options those of the connection. The cache's key is this object, which is another one after each change.
   * @throws AuthError by `upstreamFault` if it cannot be fetched, 400 if it is not metadata.
   */
  of(options: object, url: string): Promise<ProviderMetadata>;
}

/** @param text XML. @throws AuthError 400 if it does not describe exactly one identity provider. */
export async function readMetadata(xml: XmlReader, text: string): Promise<ProviderMetadata> {
  return providerIn((await xml.open(withoutComments(text), METADATA)).root);
}

/** Reads metadata at once, for commands of an operator: {@link readMetadata}. */
export function readMetadataNow(text: string): ProviderMetadata {
  return providerIn(parseXml(withoutComments(text), METADATA));
}

function providerIn(root: XmlElement): ProviderMetadata {
  const entities = isNamed(root, NS.metadata, 'EntitiesDescriptor') ? root.children : [root];
  const providers = entities.flatMap((entity) =>
    isNamed(entity, NS.metadata, 'EntityDescriptor')
      ? childrenOf(entity, 'IDPSSODescriptor').map((role) => ({ entity, role }))
      : [],
  );
  const [found, another] = providers;
  if (found === undefined || another !== undefined) {
    throw badMessage('The metadata must describe one identity provider.');
  }
  const issuer = attribute(found.entity, 'entityID') ?? '';
  const signIn = serviceOf(found.role, 'SingleSignOnService');
  const signingCert = certificatesOf(found.role);
  if (issuer === '' || signIn === undefined || signingCert.length === 0) {
    throw badMessage('The metadata lacks an entityID, a SingleSignOnService or a certificate.');
  }
  const signOut = serviceOf(found.role, 'SingleLogoutService');
  return {
    issuer,
    signInEndpoint: signIn.location,
    ...(signOut && { signOutEndpoint: signOut.location }),
    ...(signOut?.response && { signOutResponseEndpoint: signOut.response }),
    signingCert,
  };
}

/** Removes comments, which are rejected in messages. In metadata they are common, and no signature covers them here. */
function withoutComments(text: string): string {
  const [first = '', ...others] = text.split('<!--');
  const kept = others.map((other) => {
    const end = other.indexOf('-->');
    if (end < 0) throw badMessage('A comment of the metadata does not end.');
    return other.slice(end + 3);
  });
  // This also removes a byte order mark.
  return [first, ...kept].join('').trim();
}

function childrenOf(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((child) => isNamed(child, NS.metadata, name));
}

/** Returns the endpoint of a service: that of the HTTP-Redirect binding, or else that of HTTP-POST. */
function serviceOf(
  role: XmlElement,
  name: string,
): { location: string; response: string | undefined } | undefined {
  const all = childrenOf(role, name);
  const chosen = [BINDING.redirect, BINDING.post]
    .map((binding) => all.find((one) => attribute(one, 'Binding') === binding))
    .find((one) => one !== undefined);
  const location = chosen && webAddress(attribute(chosen, 'Location'));
  if (location === undefined) return undefined;
  return { location, response: webAddress(chosen && attribute(chosen, 'ResponseLocation')) };
}

function webAddress(text: string | undefined): string | undefined {
  return text !== undefined && isHttpAddress(text) ? text : undefined;
}

/** Returns the signing certificates: those of keys for signing, and of keys without a declared use. */
function certificatesOf(role: XmlElement): string[] {
  const keys = childrenOf(role, 'KeyDescriptor').filter((one) => attribute(one, 'use') !== 'encryption');
  const texts = keys.flatMap((one) =>
    descendantsOf(one)
      .filter((found) => isNamed(found, NS.signature, 'X509Certificate'))
      .map((found) => textOf(found).replaceAll(/\s/g, '')),
  );
  const pem = [...new Set(texts)].map(
    (text) =>
      `-----BEGIN CERTIFICATE-----\n${text.replace(/.{64}(?=.)/g, '$&\n')}\n-----END CERTIFICATE-----`,
  );
  return pem.filter(isUsable);
}

function isUsable(pem: string): boolean {
  try {
    rsaPublicKey(pem);
    return true;
  } catch {
    return false;
  }
}
