// A SAML identity provider for tests, which can send any Response, also invalid ones.
import { randomBytes } from 'node:crypto';
import { inflateRawSync } from 'node:zlib';
import { expect } from 'chai';
import { SignedXml } from 'xml-crypto';
import { type KeyAndCertificate, makeCertificate } from '../../saml/support.ts';
import { type Agent, type Answer, createAgent } from '../../support/agent.ts';
import { authorize, follow, tenant, webRequest } from '../../support/flows.ts';
import { startServer, type TestServer } from '../../support/server.ts';

export const IDP = 'https://idp.example.test/metadata';
export const SIGN_IN = 'https://idp.example.test/sso';
export const SIGN_OUT = 'https://idp.example.test/slo';
export const CLAIMS = 'http://schemas.xmlsoap.org/ws/2005/05/identity/claims/';
export const BINDING = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-';
const DS = 'http://www.w3.org/2000/09/xmldsig#';
const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#';

export const newId = () => `_${randomBytes(16).toString('hex')}`;
const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString();

/** The contents of a Response and its assertion; what is left out has a valid default. */
export interface ResponseOptions {
  id?: string;
  assertionId?: string;
  issuer?: string;
  responseIssuer?: string;
  destination?: string | undefined;
  recipient?: string;
  audience?: string;
  /** InResponseTo of the Response, and of the confirmation; undefined for none. */
  inResponseTo?: string | undefined;
  /** InResponseTo of the confirmation, if it differs. */
  confirmed?: string | undefined;
  nameId?: string;
  format?: string;
  sessionIndex?: string;
  /** AuthnInstant of the AuthnStatement. */
  authnInstant?: string;
  attributes?: Record<string, string | string[]>;
  issuedAt?: string;
  notBefore?: string;
  notOnOrAfter?: string;
  status?: string;
  method?: string;
  /** Replaces the whole element Conditions. */
  conditions?: string;
}

/** Returns an unsigned assertion. */
export function assertion(server: { url: string }, over: ResponseOptions = {}): string {
  const issuedAt = over.issuedAt ?? ago(0);
  const until = over.notOnOrAfter ?? ago(-300);
  const {
    recipient = `${server.url}/login/callback`,
    audience = 'urn:auth0:localhost:acme',
    format = 'urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified',
  } = over;
  const confirmed = 'confirmed' in over ? over.confirmed : over.inResponseTo;
  const attributes = Object.entries(over.attributes ?? { [`${CLAIMS}emailaddress`]: 'grace@upstream.test' })
    .map(
      ([name, values]) =>
        `<saml:Attribute Name="${name}">${[values]
          .flat()
          .map((one) => `<saml:AttributeValue>${one}</saml:AttributeValue>`)
          .join('')}</saml:Attribute>`,
    )
    .join('');
  const conditions =
    over.conditions ??
    `<saml:Conditions NotBefore="${over.notBefore ?? ago(60)}" NotOnOrAfter="${until}"><saml:AudienceRestriction><saml:Audience>${audience}</saml:Audience></saml:AudienceRestriction></saml:Conditions>`;
  return (
    `<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" Version="2.0" ID="${over.assertionId ?? newId()}" IssueInstant="${issuedAt}">` +
    `<saml:Issuer>${over.issuer ?? IDP}</saml:Issuer>` +
    `<saml:Subject><saml:NameID Format="${format}">${over.nameId ?? 'grace'}</saml:NameID>` +
    `<saml:SubjectConfirmation Method="${over.method ?? 'urn:oasis:names:tc:SAML:2.0:cm:bearer'}"><saml:SubjectConfirmationData NotOnOrAfter="${until}" Recipient="${recipient}"${confirmed === undefined ? '' : ` InResponseTo="${confirmed}"`}/></saml:SubjectConfirmation></saml:Subject>` +
    conditions +
    `<saml:AuthnStatement AuthnInstant="${over.authnInstant ?? issuedAt}" SessionIndex="${over.sessionIndex ?? '_session'}"><saml:AuthnContext><saml:AuthnContextClassRef>urn:oasis:names:tc:SAML:2.0:ac:classes:Password</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement>` +
    `<saml:AttributeStatement>${attributes}</saml:AttributeStatement></saml:Assertion>`
  );
}

/** Returns an unsigned Response around an assertion. */
export function response(server: { url: string }, content: string, over: ResponseOptions = {}): string {
  const destination = 'destination' in over ? over.destination : `${server.url}/login/callback`;
  const status = over.status ?? '<samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:Success"/>';
  return (
    `<samlp:Response xmlns:samlp="urn:oasis:names:tc:SAML:2.0:protocol" xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="${over.id ?? newId()}" Version="2.0" IssueInstant="${over.issuedAt ?? ago(0)}"` +
    `${destination === undefined ? '' : ` Destination="${destination}"`}${over.inResponseTo === undefined ? '' : ` InResponseTo="${over.inResponseTo}"`}>` +
    `<saml:Issuer>${over.responseIssuer ?? over.issuer ?? IDP}</saml:Issuer><samlp:Status>${status}</samlp:Status>${content}</samlp:Response>`
  );
}

/** How a signature differs from a usual one. */
export interface SignOptions {
  /** The algorithm of the signature. */
  signature?: string;
  /** The algorithm of the digest. */
  digest?: string;
  /** Whether it refers to the whole document (`URI=""`) and not to its element. */
  refersToDocument?: boolean;
}

/** Signs the first element with a name. */
export function signed(
  xml: string,
  name: 'Assertion' | 'Response',
  key: string,
  over: SignOptions = {},
): string {
  const element = `//*[local-name(.)='${name}']`;
  const signature = new SignedXml({
    privateKey: key,
    signatureAlgorithm: over.signature ?? 'http://www.w3.org/2001/04/xmldsig-more#rsa-sha256',
    canonicalizationAlgorithm: EXCLUSIVE,
  });
  if (over.signature?.includes('hmac') === true) signature.enableHMAC();
  signature.addReference({
    xpath: element,
    transforms: [`${DS}enveloped-signature`, EXCLUSIVE],
    digestAlgorithm: over.digest ?? 'http://www.w3.org/2001/04/xmlenc#sha256',
    isEmptyUri: over.refersToDocument ?? false,
  });
  signature.computeSignature(xml, {
    prefix: 'ds',
    location: { reference: `${element}/*[local-name(.)='Issuer']`, action: 'after' },
  });
  return signature.getSignedXml();
}

/** A login that has been sent to the provider. */
export interface StartedLogin {
  agent: Agent;
  /** The URL that the browser was sent to. */
  at: URL;
  relayState: string;
  /** The AuthnRequest, XML. */
  request: string;
  requestId: string;
}

export interface SamlWorld {
  server: TestServer;
  key: KeyAndCertificate;
  foreign: KeyAndCertificate;
  /** Begins a login, by default with the connection `acme`. */
  away(more?: Record<string, string>, agent?: Agent): Promise<StartedLogin>;
  /** Returns a Response to a request, with a signed assertion. It is valid unless `over` changes it. */
  answer(away: Pick<StartedLogin, 'requestId'>, over?: ResponseOptions, sign?: SignOptions): string;
  /** Posts a response as the provider's page does. */
  post(away: Pick<StartedLogin, 'agent' | 'relayState'>, xml: string, path?: string): Promise<Answer>;
  /** Follows the redirects. @returns the response to the application. */
  finish(agent: Agent, answer: Answer): Promise<Record<string, string>>;
}

/** Starts a server with the SAML connection `acme`, and others. */
export async function samlWorld(
  options: (key: KeyAndCertificate) => object = () => ({}),
  over: (key: KeyAndCertificate, foreign: KeyAndCertificate) => object = () => ({}),
): Promise<SamlWorld> {
  const [key, foreign] = [await makeCertificate(), await makeCertificate()];
  const { connections = [], ...more } = over(key, foreign) as { connections?: object[] };
  const acme = {
    name: 'acme',
    strategy: 'samlp',
    enabled_clients: ['web'],
    options: { signInEndpoint: SIGN_IN, signingCert: key.certificate, ...options(key) },
  };
  const server = await startServer({ tenant: { ...tenant, ...more, connections: [acme, ...connections] } });
  const world: SamlWorld = {
    server,
    key,
    foreign,
    away: async (given = {}, agent = createAgent(server)) => {
      const answered = await authorize(agent, webRequest({ connection: 'acme', ...given }));
      const at = new URL(answered.location);
      const relayState = at.searchParams.get('RelayState') ?? '';
      const message = Buffer.from(at.searchParams.get('SAMLRequest') ?? '', 'base64');
      const request = message.length === 0 ? '' : unpacked(message);
      return { agent, at, relayState, request, requestId: idOf(request) };
    },
    answer: ({ requestId }, bent = {}, sign = {}) => {
      const contents = { inResponseTo: requestId, ...bent };
      return response(
        server,
        signed(assertion(server, contents), 'Assertion', key.privateKey, sign),
        contents,
      );
    },
    post: ({ agent, relayState }, xml, path = '/login/callback') =>
      agent.request(path, {
        form: { SAMLResponse: Buffer.from(xml).toString('base64'), RelayState: relayState },
      }),
    finish: async (agent, answer) => {
      const last = await follow(agent, answer, server.url);
      expect(last.location, last.text.slice(0, 500)).not.to.equal('');
      const { hash, searchParams } = new URL(last.location);
      return Object.fromEntries(hash === '' ? searchParams : new URLSearchParams(hash.slice(1)));
    },
  };
  return world;
}

function unpacked(message: Buffer): string {
  const text = message.toString('utf8');
  return text.startsWith('<') ? text : inflateRawSync(message).toString('utf8');
}

/** Returns the ID of the first element. */
export function idOf(xml: string): string {
  return / ID="([^"]*)"/.exec(xml)?.[1] ?? '';
}
