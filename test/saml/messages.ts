// Hand-made messages of a service provider, including those that a library would never send.
import { createHmac, createSign, randomBytes } from 'node:crypto';
import { deflateRawSync } from 'node:zlib';
import { SignedXml } from 'xml-crypto';
import { ACS, SP_ISSUER } from './support.ts';

const PROTOCOL = 'urn:oasis:names:tc:SAML:2.0:protocol';
const ASSERTION = 'urn:oasis:names:tc:SAML:2.0:assertion';
export const DS = 'http://www.w3.org/2000/09/xmldsig#';
const RSA_SHA256 = 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256';
export const RSA_SHA1 = `${DS}rsa-sha1`;
export const HMAC_SHA1 = `${DS}hmac-sha1`;
const SHA256 = 'http://www.w3.org/2001/04/xmlenc#sha256';
const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#';

function newId(): string {
  return `_${randomBytes(16).toString('hex')}`;
}

/** Attributes of a message; undefined leaves one out. */
type Attributes = Record<string, string | undefined>;

function element(name: string, attributes: Attributes, issuer: string, content: string): string {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}="${value}"`)
    .join('');
  return `<samlp:${name} xmlns:samlp="${PROTOCOL}" xmlns:saml="${ASSERTION}"${written}><saml:Issuer>${issuer}</saml:Issuer>${content}</samlp:${name}>`;
}

/** Returns an AuthnRequest as service providers send it. */
export function authnRequest({
  attributes = {},
  issuer = SP_ISSUER,
  content = '',
}: {
  attributes?: Attributes;
  issuer?: string;
  content?: string;
} = {}): string {
  const all = {
    ID: newId(),
    Version: '2.0',
    IssueInstant: new Date().toISOString(),
    AssertionConsumerServiceURL: ACS,
    ...attributes,
  };
  return element('AuthnRequest', all, issuer, content);
}

/** Returns a LogoutRequest. */
export function logoutRequest({
  attributes = {},
  issuer = SP_ISSUER,
  nameId,
  format,
  sessionIndex,
}: {
  attributes?: Attributes;
  issuer?: string;
  nameId: string;
  format?: string;
  sessionIndex?: string | undefined;
}): string {
  const all = { ID: newId(), Version: '2.0', IssueInstant: new Date().toISOString(), ...attributes };
  const name = `<saml:NameID${format === undefined ? '' : ` Format="${format}"`}>${nameId}</saml:NameID>`;
  const index = sessionIndex === undefined ? '' : `<samlp:SessionIndex>${sessionIndex}</samlp:SessionIndex>`;
  return element('LogoutRequest', all, issuer, name + index);
}

/** Returns a LogoutResponse. */
export function logoutResponse({
  inResponseTo,
  status = 'urn:oasis:names:tc:SAML:2.0:status:Success',
  attributes = {},
  issuer = SP_ISSUER,
}: {
  inResponseTo: string;
  status?: string;
  attributes?: Attributes;
  issuer?: string;
}): string {
  const all = {
    ID: newId(),
    Version: '2.0',
    IssueInstant: new Date().toISOString(),
    InResponseTo: inResponseTo,
    ...attributes,
  };
  const code = `<samlp:Status><samlp:StatusCode Value="${status}"/></samlp:Status>`;
  return element('LogoutResponse', all, issuer, code);
}

export function idOf(xml: string): string {
  return / ID="([^"]*)"/.exec(xml)?.[1] ?? '';
}

/** Signs a message in the usual way, unless `over` changes it. */
export function sign(
  xml: string,
  privateKey: string,
  over: {
    signature?: string;
    digest?: string;
    c14n?: string;
    transforms?: string[];
    reference?: string;
  } = {},
): string {
  const id = idOf(xml);
  const signed = new SignedXml({
    privateKey,
    signatureAlgorithm: over.signature ?? RSA_SHA256,
    canonicalizationAlgorithm: over.c14n ?? EXCLUSIVE,
  });
  if (over.signature === HMAC_SHA1) signed.enableHMAC();
  signed.addReference({
    xpath: over.reference ?? `//*[@ID='${id}']`,
    transforms: over.transforms ?? [`${DS}enveloped-signature`, EXCLUSIVE],
    digestAlgorithm: over.digest ?? SHA256,
  });
  signed.computeSignature(xml, {
    prefix: 'ds',
    location: { reference: `//*[@ID='${id}']/*[local-name(.)='Issuer']`, action: 'after' },
  });
  return signed.getSignedXml();
}

/** Returns a message in the query of HTTP-Redirect, signed if there is a key. */
export function redirectQuery(
  xml: string,
  {
    parameter = 'SAMLRequest',
    relayState,
    privateKey,
    algorithm = RSA_SHA256,
  }: { parameter?: string; relayState?: string; privateKey?: string; algorithm?: string } = {},
): string {
  const encoded = encodeURIComponent(deflateRawSync(xml).toString('base64'));
  const state = relayState === undefined ? '' : `&RelayState=${encodeURIComponent(relayState)}`;
  const query = `${parameter}=${encoded}${state}`;
  if (privateKey === undefined) return query;
  const octets = `${query}&SigAlg=${encodeURIComponent(algorithm)}`;
  return `${octets}&Signature=${encodeURIComponent(signOctets(octets, privateKey, algorithm))}`;
}

function signOctets(octets: string, key: string, algorithm: string): string {
  if (algorithm === HMAC_SHA1) return createHmac('sha1', key).update(octets).digest('base64');
  const hash = algorithm === RSA_SHA1 ? 'RSA-SHA1' : 'RSA-SHA256';
  return createSign(hash).update(octets).sign(key, 'base64');
}

/** Returns a message in the form of HTTP-POST. */
export function postForm(
  xml: string,
  parameter = 'SAMLRequest',
  relayState?: string,
): Record<string, string> {
  return {
    [parameter]: Buffer.from(xml).toString('base64'),
    ...(relayState === undefined ? {} : { RelayState: relayState }),
  };
}

/** Splits a signed message into a copy without its signature, and the signature. */
export function split(signed: string): { unsigned: string; signature: string } {
  const signature = /<ds:Signature[\s\S]*<\/ds:Signature>/.exec(signed)?.[0] ?? '';
  return { unsigned: signed.replace(signature, ''), signature };
}
