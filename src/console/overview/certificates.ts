// The certificates that something ends with: the server's own, those of SAML, and those of applications.
import { X509Certificate } from 'node:crypto';
import type { Client, Connection } from '../../records/collections.ts';
import { certificateTexts } from '../../records/samlp-connection.ts';

interface Expiry {
  /** What it is of: a message key, and a name. */
  of: 'server' | 'connection' | 'client';
  name: string;
  /** Epoch milliseconds. */
  until: number;
}

/** When a certificate ends; undefined for what is none. @param given PEM, or base64 as metadata has it. */
function endOf(given: string): number | undefined {
  try {
    const text = given.includes('-----BEGIN ') ? given : Buffer.from(given, 'base64');
    return Date.parse(new X509Certificate(text).validTo);
  } catch {
    return undefined;
  }
}

/** The one that ends last of those that stand for the same: an older one beside it is on its way out. */
function lastOf(texts: readonly unknown[]): number | undefined {
  const ends = texts
    .filter((one): one is string => typeof one === 'string')
    .flatMap((one) => certificateTexts(one))
    .flatMap((one) => endOf(one) ?? []);
  return ends.length === 0 ? undefined : Math.max(...ends);
}

/** What is the earliest to end of a connection: whose signatures are taken, and what is signed with. */
function endOfConnection({ options }: Connection): number | undefined {
  const { signingCert, cert, signing_key: own, decryptionKey } = options as Record<string, unknown>;
  const ofKey = (key: unknown) => [(key as { cert?: unknown } | undefined)?.cert];
  const ends = [[signingCert, cert].flat(), ofKey(own), ofKey(decryptionKey)].flatMap(
    (one) => lastOf(one) ?? [],
  );
  return ends.length === 0 ? undefined : Math.min(...ends);
}

/** What an application proves itself by: it can, as long as one of them is good. */
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

/** All that end before a time, the first to end first. @param given `server`: the server's own, PEM. */
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
