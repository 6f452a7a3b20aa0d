// Our metadata for a service provider (SAML Metadata §2.4.3).

import { BINDING, CLAIMS, NAME_ID, NS } from '../../capabilities/saml-messages/names.ts';
import { type Markup, xml } from '../../capabilities/saml-messages/xml.ts';
import type { IdentityProvider } from './identity-provider.ts';
import type { ServiceProvider } from './service-provider.ts';

/** The offered attributes, by the last part of the claim type. */
const ATTRIBUTES: [string, string][] = [
  ['emailaddress', 'E-Mail Address'],
  ['givenname', 'Given Name'],
  ['name', 'Name'],
  ['surname', 'Surname'],
  ['nameidentifier', 'Name ID'],
];

/** Returns the metadata document, with every certificate that we sign with now or next. */
export async function metadata(idp: IdentityProvider, sp: ServiceProvider): Promise<string> {
  const { login, logout } = idp.addresses(sp.clientId);
  const services = (name: string, location: string): Markup[] =>
    [BINDING.redirect, BINDING.post].map((binding) => xml(name, { Binding: binding, Location: location }));
  const { markup } = xml(
    'EntityDescriptor',
    { xmlns: NS.metadata, entityID: await idp.entityId(sp.clientId) },
    xml(
      'IDPSSODescriptor',
      {
        WantAuthnRequestsSigned: String(sp.verifier !== undefined),
        protocolSupportEnumeration: NS.protocol,
      },
      ...idp.certificates().map(keyDescriptor),
      ...services('SingleLogoutService', logout),
      ...[NAME_ID.email, NAME_ID.persistent, NAME_ID.transient].map((format) =>
        xml('NameIDFormat', {}, format),
      ),
      ...services('SingleSignOnService', login),
      ...ATTRIBUTES.map(attributeElement),
    ),
  );
  return `<?xml version="1.0" encoding="UTF-8"?>\n${markup}\n`;
}

function keyDescriptor(certificate: string): Markup {
  const data = xml('X509Data', {}, xml('X509Certificate', {}, certificate));
  return xml('KeyDescriptor', { use: 'signing' }, xml('KeyInfo', { xmlns: NS.signature }, data));
}

function attributeElement([claim, friendlyName]: [string, string]): Markup {
  return xml('Attribute', {
    xmlns: NS.assertion,
    Name: `${CLAIMS}${claim}`,
    NameFormat: 'urn:oasis:names:tc:SAML:2.0:attrname-format:uri',
    FriendlyName: friendlyName,
  });
}
