// Finds certificates that expire soon: the server's own, those of connections, and those of applications.
import { X509Certificate } from 'node:crypto';
import type { Client, Connection } from '../../records/collections.ts';
import { certificateTexts } from '../../records/samlp-connection.ts';

interface Expiry {
  /** The kind of owner, and its name. */
  of: 'server' | 'connection' | 'client';
  name: string;
  /** Epoch milliseconds. */
  until: number;
}

/** Returns when a certificate expires; undefined for anything else. @param given PEM, or base64 as in metadata. */
function endOf(given: string): number | undefined {
  try {
    const text = given.includes('-----BEGIN ') ? given : Buffer.from(given, 'base64');
    return Date.parse(new X509Certificate(text).validTo);
  } catch {
    return undefined;
  }
}

/** Returns the latest expiry of certificates of which any one is enough: an older one is about to be replaced. */
function lastOf(texts: readonly unknown[]): number | undefined {
  const ends = texts
    .filter((one): one is string => typeof one === 'string')
    .flatMap((one) => certificateTexts(one))
    .flatMap((one) => endOf(one) ?? []);
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/**
 * Returns the earliest expiry among the certificates that a connection verifies with, signs with and decrypts with.
 */
function endOfConnection({ options }: Connection): number | undefined {
  const { signingCert, cert, signing_key: own, decryptionKey } = options as Record<string, unknown>;
  const ofKey = (key: unknown) => [(key as { cert?: unknown } | undefined)?.cert];
  const ends = [[signingCert, cert].flat(), ofKey(own), ofKey(decryptionKey)].flatMap(
    (one) => lastOf(one) ?? [],
  );
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** Returns the latest expiry of an application's credentials: one valid credential is enough to authenticate. */
function endOfCredentials({ client_authentication_methods: methods }: Client): number | undefined {
  const all = Object.values(methods ?? {}).flatMap(
    (method) =>
      (method as { credentials?: readonly Record<string, unknown>[] } | undefined)?.credentials ?? [],
  );
  const ends = all.map(({ pem, expires_at: at }) =>
    Math.min(
      typeof at === 'string' ? Date.parse(at) : Number.POSITIVE_INFINITY,
      (typeof pem === 'string' ? endOf(pem.replaceAll('\\n', '\n')) : undefined) ?? Number.POSITIVE_INFINITY,
    ),
  );
  return ends.length === 0 ? undefined : Math.max(...ends);
}

function endOfServiceProvider({ addons }: Client): number | undefined {
  const { signingCert, encryptionCert } = ((addons as Record<string, unknown> | undefined)?.samlp ??
    {}) as Record<string, unknown>;
  const ends = [signingCert, encryptionCert].flatMap((one) => lastOf([one]) ?? []);
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/**
 * Returns the certificates that expire before a time, the earliest first.
 * @param given `server` is the server's own certificate, PEM.
 * @param time epoch milliseconds.
 */
export function endingBefore(
  given: { server: string | undefined; connections: readonly Connection[]; clients: readonly Client[] },
  time: number,
): Expiry[] {
  const found: { of: Expiry['of']; name: string; until: number | undefined }[] = [
    { of: 'server', name: '', until: given.server === undefined ? undefined : endOf(given.server) },
    ...given.connections.map((one) => ({
      of: 'connection' as const,
      name: one.name,
      until: endOfConnection(one),
    })),
    ...given.clients.flatMap((one) =>
      [endOfCredentials(one), endOfServiceProvider(one)].map((until) => ({
        of: 'client' as const,
        name: one.name ?? one.client_id,
        until,
      })),
    ),
  ];
  return found
    .filter((one): one is Expiry => one.until !== undefined && one.until < time)
    .sort((a, b) => a.until - b.until);
}
