// A service provider by another author (@node-saml/node-saml), and helpers for its logins.
import { generateKeyPairSync } from 'node:crypto';
import { type Profile, SAML, type SamlConfig } from '@node-saml/node-saml';
import { type Agent, type Answer, readForm } from '../support/agent.ts';
import { tenant as baseTenant, follow, submitLogin } from '../support/flows.ts';
import { startServer, type TestServer } from '../support/server.ts';

export const ACS = 'https://sp.example.test/acs';
export const SLO = 'https://sp.example.test/slo';
export const SP_ISSUER = 'https://sp.example.test/metadata';
export { makeCertificate };

/** A key and its certificate, as service providers have them. */
export interface KeyAndCertificate {
  privateKey: string;
  certificate: string;
}

async function makeCertificate(modulusLength = 2048): Promise<KeyAndCertificate> {
  await import('reflect-metadata');
  const x509 = await import('@peculiar/x509');
  const keys = generateKeyPairSync('rsa', { modulusLength });
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
  const privateKey = await crypto.subtle.importKey(
    'pkcs8',
    keys.privateKey.export({ type: 'pkcs8', format: 'der' }),
    algorithm,
    true,
    ['sign'],
  );
  const publicKey = await crypto.subtle.importKey(
    'spki',
    keys.publicKey.export({ type: 'spki', format: 'der' }),
    algorithm,
    true,
    ['verify'],
  );
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: 'CN=sp.example.test',
    notBefore: new Date(Date.now() - 86_400_000),
    notAfter: new Date(Date.now() + 86_400_000),
    keys: { privateKey, publicKey },
    signingAlgorithm: algorithm,
  });
  return {
    privateKey: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
    certificate: certificate.toString('pem'),
  };
}

/** An application with the SAML addon in the tenant file's vocabulary. */
export function samlClient(clientId: string, samlp: object = {}, over: object = {}) {
  return {
    client_id: clientId,
    name: `The ${clientId} application`,
    app_type: 'regular_web',
    grant_types: [],
    callbacks: [ACS],
    addons: { samlp: { audience: SP_ISSUER, ...samlp } },
    ...over,
  };
}

/** Starts a server whose tenant has these SAML applications besides those of the other tests. */
export function startSamlServer(clients: { client_id: string }[], over: object = {}): Promise<TestServer> {
  const ids = clients.map(({ client_id }) => client_id);
  const [users, ...others] = baseTenant.databases;
  return startServer({
    tenant: {
      ...baseTenant,
      clients: [...baseTenant.clients, ...clients],
      databases: [{ ...users, enabled_clients: [...users!.enabled_clients, ...ids] }, ...others],
      ...over,
    },
  });
}

/** Returns the certificate that a server signs with, PEM. */
export async function certificateOf(server: TestServer): Promise<string> {
  const [key] = await server.store.collection('signingKeys').findBy('state', 'current');
  return `-----BEGIN CERTIFICATE-----\n${key!.x5c[0]}\n-----END CERTIFICATE-----`;
}

/** Returns the service provider of an application, as its developers would configure it. */
export async function serviceProvider(
  server: TestServer,
  clientId: string,
  over: Partial<SamlConfig> = {},
): Promise<SAML> {
  return new SAML({
    entryPoint: `${server.url}/samlp/${clientId}`,
    logoutUrl: `${server.url}/samlp/${clientId}/logout`,
    callbackUrl: ACS,
    logoutCallbackUrl: SLO,
    issuer: SP_ISSUER,
    idpCert: await certificateOf(server),
    idpIssuer: `urn:${new URL(server.url).hostname}`,
    audience: SP_ISSUER,
    wantAssertionsSigned: true,
    wantAuthnResponseSigned: false,
    signatureAlgorithm: 'sha256',
    digestAlgorithm: 'sha256',
    disableRequestedAuthnContext: true,
    ...over,
  });
}

/** The fields of the form that is posted to a service provider. */
interface Posted {
  action: string;
  fields: Record<string, string>;
  /** The decoded message. */
  xml: string;
}

/** Returns the message that a page would post. @throws Error when the page has no such form. */
export function posted(page: Answer, parameter = 'SAMLResponse'): Posted {
  const { action, fields } = readForm(page, parameter);
  return { action, fields, xml: Buffer.from(fields[parameter] ?? '', 'base64').toString('utf8') };
}

/** Opens a URL of the server, logs in if necessary, and returns the page that posts the Response. */
export async function logInAt(agent: Agent, server: { url: string }, address: string): Promise<Posted> {
  const page = await follow(agent, await agent.get(address), server.url);
  if (page.status === 200 && page.text.includes('name="SAMLResponse"')) return posted(page);
  return posted(await submitLogin(agent, server, page));
}

/** Logs in at a service provider with an AuthnRequest by HTTP-Redirect. */
export async function signOn(
  agent: Agent,
  server: TestServer,
  sp: SAML,
  relayState = 'the-relay-state',
): Promise<{ profile: Profile; posted: Posted }> {
  const response = await logInAt(agent, server, await sp.getAuthorizeUrlAsync(relayState, undefined, {}));
  const { profile } = await sp.validatePostResponseAsync(response.fields);
  if (profile === null) throw new Error('the service provider has no profile');
  return { profile, posted: response };
}
