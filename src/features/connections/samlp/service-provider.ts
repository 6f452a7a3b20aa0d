// This server as the service provider of a SAML connection: entity ID, URLs and keys.
import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import type { Signer } from '../../../capabilities/saml-messages/signature.ts';
import { isExternal } from '../../../capabilities/signing/key-set.ts';
import { JOSE_ALG, signLocally } from '../../../capabilities/signing/local.ts';
import type { Sign } from '../../../capabilities/signing/signing.ts';
import type { Frozen } from '../../../records/base/record.ts';
import type { Connection } from '../../../records/collections.ts';
import type { SamlpOptions } from '../../../records/connections/samlp-connection.ts';
import type { SigningKeyRecord } from '../../../records/state/engine.ts';
import { keysFor, type SigningKey } from '../../../tenant/tenant-snapshot.ts';
import { tenantName } from '../../flow/widget.ts';
import type { UpstreamDependencies } from '../redirect.ts';
import { CALLBACK } from '../upstream/begin.ts';

export type ServiceProviderDependencies = Pick<UpstreamDependencies, 'baseUrl' | 'config' | 'store' | 'sign'>;

export function entityId(
  { baseUrl, config }: Pick<ServiceProviderDependencies, 'baseUrl' | 'config'>,
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

interface ServiceProviderKey {
  sign: Signer['sign'];
  /** Undefined for a key in an external key store, which cannot decrypt here. */
  privateKey: KeyObject | undefined;
  /** DER, base64; undefined for a key in the options without a certificate. */
  certificate: string | undefined;
  /** Whether it is in our metadata. A previous key is not, and only decrypts what is still encrypted for it. */
  isPublished: boolean;
}

// docs/understand/decisions/saml.md#keys-of-a-saml-connection-are-its-own-or-else-the-tenants
/** Returns our signing keys, the current one first: those of the options, or else of the connection, or else of the tenant. */
export async function signingKeys(
  { config, store, sign }: ServiceProviderDependencies,
  { id }: Pick<Connection, 'id'>,
  { signing_key: configured }: SamlpOptions,
): Promise<ServiceProviderKey[]> {
  if (configured !== undefined) return [configuredKey(configured)];
  const keys = await store.collection('connectionKeys').findBy('connection', id);
  return keys.length > 0
    ? inOrder(keys).map(connectionKey)
    : keysFor(config.signingKeys(), 'RS256').map((key) => tenantKey(sign, key));
}

/** Returns the keys for which assertions may be encrypted, the one in our metadata first. */
export async function decryptionKeys(
  deps: ServiceProviderDependencies,
  connection: Pick<Connection, 'id'>,
  options: SamlpOptions,
): Promise<ServiceProviderKey[]> {
  const { decryptionKey: configured } = options;
  if (configured === undefined) {
    return (await signingKeys(deps, connection, options)).filter(
      ({ privateKey }) => privateKey !== undefined,
    );
  }
  return [configuredKey(typeof configured === 'string' ? { key: configured } : configured)];
}

/** Returns the signer of messages to a connection's provider. @throws Error if there is no key with a certificate. */
export async function signerOf(
  deps: ServiceProviderDependencies,
  connection: Pick<Connection, 'id'>,
  options: SamlpOptions,
): Promise<Signer> {
  const [key] = await signingKeys(deps, connection, options);
  if (key?.certificate === undefined) throw new Error('the tenant has no signing key');
  const { signatureAlgorithm, digestAlgorithm } = options;
  return { sign: key.sign, certificate: key.certificate, signatureAlgorithm, digestAlgorithm };
}

const STATE_ORDER = ['current', 'next', 'previous'];

function inOrder<K extends Frozen<SigningKeyRecord>>(keys: readonly K[]): K[] {
  return [...keys].sort((a, b) => STATE_ORDER.indexOf(a.state) - STATE_ORDER.indexOf(b.state));
}

function connectionKey(key: Frozen<SigningKeyRecord>): ServiceProviderKey {
  return { ...localSigning(privateKeyOf(key)), ...publicPart(key) };
}

/** Returns a key of the tenant, which may be in an external key store. */
function tenantKey(sign: Sign, key: SigningKey): ServiceProviderKey {
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

function localSigning(privateKey: KeyObject): Pick<ServiceProviderKey, 'sign' | 'privateKey'> {
  return { privateKey, sign: (algorithm, octets) => signLocally(JOSE_ALG[algorithm], privateKey, octets) };
}

function configuredKey({ key, cert }: { key: string; cert?: string | undefined }): ServiceProviderKey {
  return {
    ...localSigning(createPrivateKey(key.replaceAll('\\n', '\n'))),
    certificate: cert?.replaceAll('\\n', '\n').replaceAll(/-----[^-]+-----|\s/g, ''),
    isPublished: true,
  };
}
