// A SAML identity provider, as described by a connection's options or by its metadata.

import type { KeyObject } from 'node:crypto';
import { isAuthenticated } from '../../../capabilities/saml-messages/decryption.ts';
import type { Verifier } from '../../../capabilities/saml-messages/signature.ts';
import type { Connection } from '../../../records/collections.ts';
import { strategyRecord } from '../../../records/connections/connections.ts';
import { rsaPublicKey } from '../../../records/connections/samlp.ts';
import {
  certificateTexts,
  type SamlpOptions,
  samlpOptionsSchema,
} from '../../../records/connections/samlp-connection.ts';
import { withoutEnd } from '../../../runtime/without-end.ts';
import { type UpstreamDependencies, upstreamFault } from '../redirect.ts';
import { fetchMetadata } from './metadata-fetch.ts';
import { type ProviderMetadata, readMetadata } from './metadata-import.ts';

export interface SamlProvider {
  options: SamlpOptions;
  /** The URL for AuthnRequests. */
  signIn: string;
  /** The URL for LogoutRequests; undefined if the connection has no single logout. */
  signOut: string | undefined;
  /** The URL for LogoutResponses. */
  signOutResponse: string | undefined;
  /** Its entity ID, if known. */
  issuer: string | undefined;
  verifier: Verifier;
}

export function isSaml({ strategy }: Pick<Connection, 'strategy'>): boolean {
  return strategyRecord(strategy)?.options === samlpOptionsSchema;
}

/** @throws ZodError for options that were never validated. */
export function samlpOptions({ options }: Pick<Connection, 'options'>): SamlpOptions {
  return samlpOptionsSchema.parse(options);
}

/** @throws AuthError by {@link upstreamFault} if its metadata or options are incomplete. */
export async function providerOf(
  deps: Pick<UpstreamDependencies, 'samlMetadata'>,
  connection: Pick<Connection, 'options'>,
): Promise<SamlProvider> {
  const options = samlpOptions(connection);
  const metadata = await metadataOf(deps, connection, options);
  const { pingFederateBaseUrl: ping, disableSignout } = options;
  const signIn =
    metadata?.signInEndpoint ?? options.signInEndpoint ?? (ping && `${withoutSlash(ping)}/idp/SSO.saml2`);
  const signOut =
    metadata?.signOutEndpoint ?? options.signOutEndpoint ?? (ping && `${withoutSlash(ping)}/idp/SLO.saml2`);
  const certificates = metadata?.signingCert ?? options.signingCert ?? options.cert;
  if (signIn === undefined || certificates === undefined) {
    throw upstreamFault('invalid_request', 'The connection has no signInEndpoint or no signingCert.');
  }
  const hasSignOut = !disableSignout && signOut !== undefined && signOut !== '';
  return {
    options,
    signIn,
    signOut: hasSignOut ? signOut : undefined,
    signOutResponse: hasSignOut
      ? (metadata?.signOutResponseEndpoint ?? options.signOutResponseEndpoint) || signOut
      : undefined,
    issuer: metadata?.issuer ?? options.issuer,
    verifier: {
      publicKeys: certificateTexts(certificates).map(publicKey),
      allowSha1: options.signatureAlgorithm === 'rsa-sha1',
    },
  };
}

const publicKey = (text: string): KeyObject => rsaPublicKey(text);
const withoutSlash = (url: string) => withoutEnd(url, '/');

/** Returns the provider's metadata; undefined if the options have everything. */
async function metadataOf(
  deps: Pick<UpstreamDependencies, 'samlMetadata'>,
  connection: Pick<Connection, 'options'>,
  { metadataXml, metadataUrl, signInEndpoint, signingCert }: SamlpOptions,
): Promise<ProviderMetadata | undefined> {
  if (metadataXml !== undefined) return deps.samlMetadata.in(metadataXml);
  // The Management API has stored in the options what it read from the metadata URL.
  if (metadataUrl === undefined || (signInEndpoint !== undefined && signingCert !== undefined))
    return undefined;
  return deps.samlMetadata.of(connection.options, metadataUrl);
}

/**
 * Returns the options of a connection with the contents of the metadata that they name (`metadataXml` or `metadataUrl`), which
 * replace what the options have. Options of other strategies, and those without metadata, are returned unchanged.
 * @throws AuthError by {@link upstreamFault} if the metadata cannot be fetched, 400 if it is not metadata.
 */
export async function importMetadata(
  deps: Pick<UpstreamDependencies, 'fetch' | 'xml'>,
  strategy: string,
  options: Record<string, unknown>,
): Promise<Record<string, unknown>> {
  const { metadataXml: text, metadataUrl: url } = options;
  if (!isSaml({ strategy })) return options;
  const isText = typeof text === 'string' && text !== '';
  if (!isText && (typeof url !== 'string' || !URL.canParse(url))) return options;
  const { signingCert, ...members } = await (isText
    ? readMetadata(deps.xml, text)
    : fetchMetadata(deps, String(url)));
  return { ...options, ...members, signingCert: signingCert.join('\n') };
}

/** Whether assertions may be encrypted by an algorithm: any supported one, or those that the connection's settings allow. */
export function acceptsEncryption(
  { assertion_decryption_settings: settings }: SamlpOptions,
  algorithm: string,
): boolean {
  if (settings === undefined || isAuthenticated(algorithm)) return true;
  const fragment = algorithm.split('#').at(-1) ?? '';
  return settings.algorithm_exceptions.some((one) => one === algorithm || one === fragment);
}
