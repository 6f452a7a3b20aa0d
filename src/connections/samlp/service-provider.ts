// We as the service provider of a connection: entity ID, addresses and keys.
import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { tenantName } from '../../flow/widget.ts';
import type { Connection } from '../../records/collections.ts';
import type { SigningKeyRecord } from '../../records/engine.ts';
import type { Frozen } from '../../records/record.ts';
import type { SamlpOptions } from '../../records/samlp-connection.ts';
import type { Signer } from '../../saml-messages/signature.ts';
import { isHeld } from '../../signing/key-set.ts';
import { JOSE_ALG, signLocally } from '../../signing/local.ts';
import type { Sign } from '../../signing/signing.ts';
import { keysFor, type SigningKey } from '../../tenant/snapshot.ts';
import type { UpstreamDependencies } from '../redirect.ts';
import { CALLBACK } from '../upstream/begin.ts';

export type OwnDependencies = Pick<UpstreamDependencies, 'baseUrl' | 'config' | 'store' | 'sign'>;

/** Our entity ID at a connection's provider. */
export function entityId(
  { baseUrl, config }: Pick<OwnDependencies, 'baseUrl' | 'config'>,
  { name }: Pick<Connection, 'name'>,
  options: SamlpOptions,
): string {
  return options.entityId ?? `urn:${config.settings().vendor_channel}:${tenantName(baseUrl)}:${name}`;
}

/** Where a connection's provider sends its responses. */
export function consumerUrl(baseUrl: string, { name }: Pick<Connection, 'name'>): string {
  return `${baseUrl}${CALLBACK}?connection=${encodeURIComponent(name)}`;
}

/** Where providers send messages about logout. */
export function logoutUrl(baseUrl: string): string {
  return `${baseUrl}/logout`;
}

interface OwnKey {
  sign: Signer['sign'];
  /** Undefined for one that is kept outside: it decrypts nothing here. */
  privateKey: KeyObject | undefined;
  /** Base64 of the DER; undefined for a key of the options that came without one. */
  certificate: string | undefined;
  /** Whether it is in our metadata: earlier ones decrypt what was encrypted for them, and sign nothing. */
  isPublished: boolean;
}

/** The keys that we sign with, the one that signs first: those of the options, of the connection, or of the tenant. */
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

/** The keys that assertions may be encrypted for, the one in our metadata first. */
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

/** What messages to a connection's provider are signed with. */
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

/** A key of the connection's own. */
function kept(key: Frozen<SigningKeyRecord>): OwnKey {
  return { ...ownSigning(privateKeyOf(key)), ...publicPart(key) };
}

/** A key of the tenant's, which signs wherever it is. */
function tenantKey(sign: Sign, key: SigningKey): OwnKey {
  return {
    privateKey: isHeld(key) ? undefined : privateKeyOf(key),
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
