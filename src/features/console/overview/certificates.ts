// Finds certificates that expire soon: the server's own, those of connections, and those of applications.
import { X509Certificate } from 'node:crypto';
import type { Client, Connection } from '../../../records/collections.ts';
import { certificateTexts } from '../../../records/samlp-connection.ts';

interface Expiry {
  /** The kind of owner, and its name. */
  owner: 'server' | 'connection' | 'client';
  name: string;
  /** Epoch milliseconds. */
  expiresAt: number;
}

/** Returns when a certificate expires; undefined for anything else. @param certificate PEM, or base64 as in metadata. */
function expiryOf(certificate: string): number | undefined {
  try {
    const text = certificate.includes('-----BEGIN ') ? certificate : Buffer.from(certificate, 'base64');
    return Date.parse(new X509Certificate(text).validTo);
  } catch {
    return undefined;
  }
}

/** Returns the latest expiry of certificates of which any one is enough: an older one is about to be replaced. */
function latestExpiry(texts: readonly unknown[]): number | undefined {
  const ends = texts
    .filter((one): one is string => typeof one === 'string')
    .flatMap((one) => certificateTexts(one))
    .flatMap((one) => expiryOf(one) ?? []);
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/**
 * Returns the earliest expiry among the certificates that a connection verifies with, signs with and decrypts with.
 */
function connectionExpiry({ options }: Connection): number | undefined {
  const { signingCert, cert, signing_key: signingKey, decryptionKey } = options as Record<string, unknown>;
  const ofKey = (key: unknown) => [(key as { cert?: unknown } | undefined)?.cert];
  const ends = [[signingCert, cert].flat(), ofKey(signingKey), ofKey(decryptionKey)].flatMap(
    (one) => latestExpiry(one) ?? [],
  );
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** Returns the latest expiry of an application's credentials: one valid credential is enough to authenticate. */
function credentialsExpiry({ client_authentication_methods: methods }: Client): number | undefined {
  const all = Object.values(methods ?? {}).flatMap(
    (method) =>
      (method as { credentials?: readonly Record<string, unknown>[] } | undefined)?.credentials ?? [],
  );
  const ends = all.map(({ pem, expires_at: at }) =>
    Math.min(
      typeof at === 'string' ? Date.parse(at) : Number.POSITIVE_INFINITY,
      (typeof pem === 'string' ? expiryOf(pem.replaceAll('\\n', '\n')) : undefined) ??
        Number.POSITIVE_INFINITY,
    ),
  );
  return ends.length === 0 ? undefined : Math.max(...ends);
}

function serviceProviderExpiry({ addons }: Client): number | undefined {
  const { signingCert, encryptionCert } = ((addons as Record<string, unknown> | undefined)?.samlp ??
    {}) as Record<string, unknown>;
  const ends = [signingCert, encryptionCert].flatMap((one) => latestExpiry([one]) ?? []);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/**
 * Returns the certificates that expire before a time, the earliest first.
 * @param sources `server` is the server's own certificate, PEM.
 * @param time epoch milliseconds.
 */
export function expiringBefore(
  sources: { server: string | undefined; connections: readonly Connection[]; clients: readonly Client[] },
  time: number,
): Expiry[] {
  const found: { owner: Expiry['owner']; name: string; expiresAt: number | undefined }[] = [
    {
      owner: 'server',
      name: '',
      expiresAt: sources.server === undefined ? undefined : expiryOf(sources.server),
    },
    ...sources.connections.map((one) => ({
      owner: 'connection' as const,
      name: one.name,
      expiresAt: connectionExpiry(one),
    })),
    ...sources.clients.flatMap((one) =>
      [credentialsExpiry(one), serviceProviderExpiry(one)].map((expiresAt) => ({
        owner: 'client' as const,
        name: one.name ?? one.client_id,
        expiresAt,
      })),
    ),
  ];
  return found
    .filter((one): one is Expiry => one.expiresAt !== undefined && one.expiresAt < time)
    .sort((a, b) => a.expiresAt - b.expiresAt);
}
