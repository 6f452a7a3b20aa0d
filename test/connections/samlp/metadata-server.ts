// A server that publishes the metadata of a SAML identity provider.
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { BINDING, IDP, SIGN_IN, SIGN_OUT } from './provider.ts';

/** Returns metadata as providers publish it. @param certificates those that it signs with, PEM. */
export function metadata(
  certificates: readonly string[],
  over: { entityId?: string; signIn?: string } = {},
): string {
  const keys = certificates
    .map(
      (pem) =>
        `<md:KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>\n${pem.replaceAll(/-----[^-]+-----/g, '')}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>`,
    )
    .join('');
  return `<?xml version="1.0"?><!-- by hand --><md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="${over.entityId ?? IDP}"><md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">${keys}<md:SingleLogoutService Binding="${BINDING}Redirect" Location="${SIGN_OUT}" ResponseLocation="${SIGN_OUT}/answer"/><md:SingleSignOnService Binding="${BINDING}POST" Location="${SIGN_IN}/post"/><md:SingleSignOnService Binding="${BINDING}Redirect" Location="${over.signIn ?? SIGN_IN}"/></md:IDPSSODescriptor></md:EntityDescriptor>`;
}

/** Starts a server that publishes metadata. */
export async function publish() {
  let answer = { status: 200, body: '' };
  let requests = 0;
  const server = http.createServer((_request, response) => {
    requests++;
    response.writeHead(answer.status, { 'content-type': 'application/samlmetadata+xml' }).end(answer.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/metadata`,
    requests: () => requests,
    set: (body: string, status = 200) => {
      answer = { status, body };
    },
    stop: () => new Promise((resolve) => server.close(resolve)),
  };
}
