// This server as the service provider of a SAML connection: entity ID, URLs and keys.
import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { tenantName } from '../../flow/widget.ts';
import type { Connection } from '../../records/collections.ts';
import type { SigningKeyRecord } from '../../records/engine.ts';
import type { Frozen } from '../../records/record.ts';
import type { SamlpOptions } from '../../records/samlp-connection.ts';
import type { Signer } from '../../saml-messages/signature.ts';
import { isExternal } from '../../signing/key-set.ts';
import { JOSE_ALG, signLocally } from '../../signing/local.ts';
import type { Sign } from '../../signing/signing.ts';
import { keysFor, type SigningKey } from '../../tenant/snapshot.ts';
import type { UpstreamDependencies } from '../redirect.ts';
import { CALLBACK } from '../upstream/begin.ts';

export type OwnDependencies = Pick<UpstreamDependencies, 'baseUrl' | 'config' | 'store' | 'sign'>;

/** Returns our entity ID at a connection's provider. */
export function entityId(
  { baseUrl, config }: Pick<OwnDependencies, 'baseUrl' | 'config'>,
  { name }: Pick<Connection, 'name'>,
  options: SamlpOptions,
): string {
  return options.entityId ?? `urn:${config.settings().vendor_channel}:${tenantName(baseUrl)}:${name}`;
}

/** Returns the assertion consumer service URL, to which a connection's provider sends its Responses. */
export function consumerUrl(baseUrl: string, { name }: Pick<Connection, 'name'>): string {
  return `${baseUrl}${CALLBACK}?connection=${encodeURIComponent(name)}`;
}

/** Returns the single logout service URL. */
export function logoutUrl(baseUrl: string): string {
  return `${baseUrl}/logout`;
}

interface OwnKey {
  sign: Signer['sign'];
  /** Undefined for a key in an external key store, which cannot decrypt here. */
  privateKey: KeyObject | undefined;
  /** DER, base64; undefined for a key in the options without a certificate. */
  certificate: string | undefined;
  /** Whether it is in our metadata. A previous key is not, and only decrypts what is still encrypted for it. */
  isPublished: boolean;
}

/** Returns our signing keys, the current one first: those of the options, or else of the connection, or else of the tenant. */
export async function signingKeys(
  { config, store, sign }: OwnDependencies,
  { id }: Pick<Connection, 'id'>,
  { signing_key: own }: SamlpOptions,
): Promise<OwnKey[]> {
  if (own !== undefined) return [ownKey(own)];
  const made = await store.collection('connectionKeys').findBy('connection', id);
  return made.length > 0
    ? ordered(made).map(kept)
    : keysFor(config.signingKeys(), 'RS256').map((key) => tenantKey(sign, key));
}

/** Returns the keys for which assertions may be encrypted, the one in our metadata first. */
export async function decryptionKeys(
  deps: OwnDependencies,
  connection: Pick<Connection, 'id'>,
  options: SamlpOptions,
): Promise<OwnKey[]> {
  const { decryptionKey: own } = options;
  if (own === undefined) {
    return (await signingKeys(deps, connection, options)).filter(
      ({ privateKey }) => privateKey !== undefined,
    );
  }
  return [ownKey(typeof own === 'string' ? { key: own } : own)];
}

/** Returns the signer of messages to a connection's provider. @throws Error if there is no key with a certificate. */
export async function signerOf(
  deps: OwnDependencies,
  connection: Pick<Connection, 'id'>,
  options: SamlpOptions,
): Promise<Signer> {
  const [key] = await signingKeys(deps, connection, options);
  if (key?.certificate === undefined) throw new Error('the tenant has no signing key');
  const { signatureAlgorithm, digestAlgorithm } = options;
  return { sign: key.sign, certificate: key.certificate, signatureAlgorithm, digestAlgorithm };
}

const ORDER = ['current', 'next', 'previous'];

function ordered<K extends Frozen<SigningKeyRecord>>(keys: readonly K[]): K[] {
  return [...keys].sort((a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state));
}

/** Returns a key that belongs to the connection. */
function kept(key: Frozen<SigningKeyRecord>): OwnKey {
  return { ...ownSigning(privateKeyOf(key)), ...publicPart(key) };
}

/** Returns a key of the tenant, which may be in an external key store. */
function tenantKey(sign: Sign, key: SigningKey): OwnKey {
  return {
    privateKey: isExternal(key) ? undefined : privateKeyOf(key),
    ...publicPart(key),
    sign: (algorithm, octets) => sign(JOSE_ALG[algorithm], key.id, octets),
  };
}

function publicPart({ x5c, state }: Frozen<SigningKeyRecord>) {
  return { certificate: x5c[0], isPublished: state !== 'previous' };
}

function privateKeyOf({ jwk }: Frozen<SigningKeyRecord>): KeyObject {
  return createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' });
}

function ownSigning(privateKey: KeyObject): Pick<OwnKey, 'sign' | 'privateKey'> {
  return { privateKey, sign: (algorithm, octets) => signLocally(JOSE_ALG[algorithm], privateKey, octets) };
}

function ownKey({ key, cert }: { key: string; cert?: string | undefined }): OwnKey {
  return {
    ...ownSigning(createPrivateKey(key.replaceAll('\\n', '\n'))),
    certificate: cert?.replaceAll('\\n', '\n').replaceAll(/-----[^-]+-----|\s/g, ''),
    isPublished: true,
  };
}
