// Finds the connection whose identity provider sent a message.
import { AuthError } from '../../http/errors.ts';
import type { Connection } from '../../records/collections.ts';
import { type ReceivedMessage, verifyMessage } from '../../saml-messages/bindings.ts';
import { issuerOf } from '../../saml-messages/message.ts';
import { parseXml } from '../../saml-messages/reader.ts';
import { badMessage, type XmlElement } from '../../saml-messages/xml.ts';
import type { UpstreamDependencies } from '../redirect.ts';
import { isSaml, providerOf, type SamlProvider } from './provider.ts';

/** A message with a verified signature, and the connection whose provider sent it. */
export interface VerifiedMessage {
  connection: Connection;
  provider: SamlProvider;
  root: XmlElement;
}

/**
 * Verifies a message and finds the connection whose provider signed it.
 * @param preferred the name of the connection that is tried first, because several may have the same provider.
 * @throws AuthError 400 if it is not signed by the provider of any connection.
 */
export async function senderOf(
  deps: Pick<UpstreamDependencies, 'config' | 'samlMetadata'>,
  received: ReceivedMessage,
  preferred: string | undefined,
): Promise<VerifiedMessage> {
  const issuer = issuerOf(parseXml(received.text));
  const connections = (await deps.config.connections())
    .filter(isSaml)
    .sort((a, b) => Number(b.name === preferred) - Number(a.name === preferred));
  for (const connection of connections) {
    try {
      const provider = await providerOf(deps, connection);
      if (provider.signOut === undefined || (provider.issuer ?? issuer) !== issuer) continue;
      return { connection, provider, root: verifyMessage(received, provider.verifier) };
    } catch (thrown) {
      if (!(thrown instanceof AuthError)) throw thrown;
    }
  }
  throw badMessage('The SAML message is of no identity provider that is known here, or is not signed by it.');
}
