// Checks our messages with the standard's schemas, and with a signature library that shares no code with the one
// that signs.
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { DOMImplementation, DOMParser, XMLSerializer } from '@xmldom/xmldom';
import { validateXML } from 'xmllint-wasm';

const schema = (fileName: string) => ({
  fileName,
  contents: readFileSync(new URL(`schemas/${fileName}`, import.meta.url), 'utf8'),
});
const SHARED = ['saml-schema-assertion-2.0.xsd', 'xmldsig-core-schema.xsd', 'xenc-schema.xsd'].map(schema);
const MAIN = { protocol: schema('saml-schema-protocol-2.0.xsd'), metadata: schema('metadata-idp.xsd') };

/** Returns the schema violations of a message; empty when it is valid. */
export async function schemaFaults(xml: string, kind: keyof typeof MAIN = 'protocol'): Promise<string[]> {
  const result = await validateXML({
    xml: [{ fileName: 'message.xml', contents: xml }],
    schema: [MAIN[kind]],
    preload: SHARED,
  });
  return result.errors.map(({ message }) => message);
}

// Loaded with require, because their types would add the browser's globals to every file.
const require = createRequire(import.meta.url);
const { Application, SignedXml } = require('xmldsigjs');
const { setNodeDependencies } = createRequire(require.resolve('xmldsigjs'))('xml-core');
const xpath = createRequire(require.resolve('xmldsigjs'))('xpath');
setNodeDependencies({ DOMImplementation, DOMParser, XMLSerializer, xpath });
Application.setEngine('node', globalThis.crypto);

/**
 * Verifies one of the signatures in a message with the key of a certificate (PEM).
 * @param parent local name of the signed element.
 */
export async function isSignedBy(xml: string, parent: string, certificate: string): Promise<boolean> {
  const document = new DOMParser().parseFromString(xml, 'text/xml');
  const signature = [
    ...document.getElementsByTagNameNS('http://www.w3.org/2000/09/xmldsig#', 'Signature'),
  ].find((element) => element.parentElement?.localName === parent);
  if (signature === undefined) return false;
  const hash = /rsa-sha(\d+)"/.exec(signature.toString())?.[1] ?? '256';
  const key = await crypto.subtle.importKey(
    'spki',
    new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' }),
    { name: 'RSASSA-PKCS1-v1_5', hash: `SHA-${hash}` },
    true,
    ['verify'],
  );
  const signed = new SignedXml(document);
  signed.LoadXml(signature);
  try {
    return await signed.Verify(key);
  } catch (thrown) {
    // The library's message for a wrong digest.
    if (/digest/i.test((thrown as { message?: string }).message ?? '')) return false;
    throw thrown;
  }
}
