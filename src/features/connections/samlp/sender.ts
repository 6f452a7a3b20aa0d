// Finds the connection whose identity provider sent a message.

import { type ReceivedMessage, verifyMessage } from '../../../capabilities/saml-messages/bindings.ts';
import { issuerOf } from '../../../capabilities/saml-messages/message.ts';
import { parseXml } from '../../../capabilities/saml-messages/reader.ts';
import { badMessage, type XmlElement } from '../../../capabilities/saml-messages/xml.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Connection } from '../../../records/collections.ts';
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
  const candidates: Omit<VerifiedMessage, 'root'>[] = [];
  for (const connection of connections) {
    const provider = await providerOf(deps, connection).catch(refusal);
    if (provider?.signOut === undefined || (provider.issuer ?? issuer) !== issuer) continue;
    candidates.push({ connection, provider });
  }
  if (candidates.length === 0) throw unknownSender();
  // A stranger's message is verified once, however many connections there are, and not once for each.
  const verifiers = candidates.map(({ provider }) => provider.verifier);
  const anySender = {
    publicKeys: verifiers.flatMap(({ publicKeys }) => publicKeys),
    allowSha1: verifiers.some(({ allowSha1 }) => allowSha1),
  };
  try {
    verifyMessage(received, anySender);
  } catch (thrown) {
    refusal(thrown);
    throw unknownSender();
  }
  for (const candidate of candidates) {
    try {
      return { ...candidate, root: verifyMessage(received, candidate.provider.verifier) };
    } catch (thrown) {
      refusal(thrown);
    }
  }
  throw unknownSender();
}

/** Rethrows anything but a refusal. */
function refusal(thrown: unknown): undefined {
  if (!(thrown instanceof AuthError)) throw thrown;
}

function unknownSender(): AuthError {
  return badMessage(
    'The SAML message is of no identity provider that is known here, or is not signed by it.',
  );
}
