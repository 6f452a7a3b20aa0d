// The metadata of this server for the identity provider of a connection (SAML Metadata §2.4.4).

import { CONTENT_ALGORITHMS, KEY_ALGORITHMS } from '../../../capabilities/saml-messages/decryption.ts';
import { BINDING, NAME_ID, NS } from '../../../capabilities/saml-messages/names.ts';
import { type Markup, xml } from '../../../capabilities/saml-messages/xml.ts';
import type { Connection } from '../../../records/collections.ts';
import { acceptsEncryption, samlpOptions } from './provider.ts';
import {
  consumerUrl,
  decryptionKeys,
  entityId,
  logoutUrl,
  type ServiceProviderDependencies,
  signingKeys,
} from './service-provider.ts';

/** Returns the metadata document, with the current and next signing certificates and the encryption certificate. */
export async function serviceProviderMetadata(
  deps: ServiceProviderDependencies,
  connection: Connection,
): Promise<string> {
  const options = samlpOptions(connection);
  const signing = (await signingKeys(deps, connection, options)).filter((one) => one.isPublished);
  const [encryption] = await decryptionKeys(deps, connection, options);
  const logout = logoutUrl(deps.baseUrl);
  const { markup } = xml(
    'EntityDescriptor',
    { xmlns: NS.metadata, entityID: entityId(deps, connection, options) },
    xml(
      'SPSSODescriptor',
      {
        AuthnRequestsSigned: String(options.signSAMLRequest),
        WantAssertionsSigned: 'true',
        protocolSupportEnumeration: NS.protocol,
      },
      ...signing.map(({ certificate }) => keyDescriptor('signing', certificate)),
      keyDescriptor('encryption', encryption?.certificate, [
        ...CONTENT_ALGORITHMS.filter((one) => acceptsEncryption(options, one)),
        ...KEY_ALGORITHMS,
      ]),
      ...(options.disableSignout
        ? []
        : [BINDING.redirect, BINDING.post].map((binding) =>
            xml('SingleLogoutService', { Binding: binding, Location: logout }),
          )),
      ...[NAME_ID.email, NAME_ID.persistent, NAME_ID.unspecified].map((format) =>
        xml('NameIDFormat', {}, format),
      ),
      xml('AssertionConsumerService', {
        Binding: BINDING.post,
        Location: options.recipientUrl || consumerUrl(deps.baseUrl, connection),
        index: '0',
        isDefault: 'true',
      }),
    ),
  );
  return `<?xml version="1.0" encoding="UTF-8"?>\n${markup}\n`;
}

/** @param methods the algorithms that the key may be used with (SAML Metadata §2.4.1.1). */
function keyDescriptor(
  use: 'signing' | 'encryption',
  certificate: string | undefined,
  methods: readonly string[] = [],
): Markup | undefined {
  if (certificate === undefined) return undefined;
  const data = xml('X509Data', {}, xml('X509Certificate', {}, certificate));
  return xml(
    'KeyDescriptor',
    { use },
    xml('KeyInfo', { xmlns: NS.signature }, data),
    ...methods.map((Algorithm) => xml('EncryptionMethod', { Algorithm })),
  );
}
