// Custom domains: names of a tenant behind an edge of its own, which authenticates itself with an API key.
import { z } from 'zod';
import { sha256 } from '../../runtime/secrets.ts';
import { EXPOSED_SECRET } from '../clients/client-authentication.ts';

export interface CustomDomain {
  /** In lower case. */
  domain: string;
  /** The hashes of its API keys; several during rotation. */
  keyHashes: readonly string[];
  /** The header in which the edge sends the client's address, in lower case. */
  clientIpHeader?: string;
  /** What the tenant has stored with it for its own code. */
  metadata: Readonly<Record<string, unknown>>;
}

/** Returns the stored hash of an API key; a key is long and random, so a plain hash is enough. */
export const apiKeyHash = sha256;

/** A limit so that old keys are removed. */
const MAX_KEYS = 4;

const apiKey = z
  .string()
  .min(EXPOSED_SECRET, `must have at least ${EXPOSED_SECRET} characters`)
  .regex(/^[\x21-\x7E]+$/, 'must be visible ASCII characters: it is sent in a header');

const keyMembers = z.object({
  api_key: apiKey.optional(),
  api_keys: z.array(apiKey).max(MAX_KEYS).optional(),
  /** Hashes as written by `gatehouse export`. */
  api_key_hashes: z
    .array(z.string().regex(/^[\w-]{43}$/, 'must be SHA-256 hashes in base64url'))
    .max(MAX_KEYS)
    .optional(),
});

/**
 * A custom domain in the tenant file. Its keys are stored as hashes only. Whoever writes the file runs the server, so a
 * domain with a key needs no further verification.
 */
export const customDomainSchema = z
  .record(z.string(), z.unknown())
  .refine(({ domain }) => typeof domain === 'string' && domain !== '', 'needs a domain')
  .transform((item, context) => {
    const { api_key, api_keys, api_key_hashes, ...rest } = item;
    const result = keyMembers.safeParse({ api_key, api_keys, api_key_hashes });
    if (!result.success) {
      for (const { path, message } of result.error.issues)
        context.addIssue({ code: 'custom', path, message });
      return z.NEVER;
    }
    const keys = [result.data.api_key ?? [], result.data.api_keys ?? []].flat();
    const hashes = [...new Set([...(result.data.api_key_hashes ?? []), ...keys.map(apiKeyHash)])];
    const isGiven = keys.length > 0 || result.data.api_key_hashes !== undefined;
    return {
      ...rest,
      ...(isGiven && { api_key_hashes: hashes }),
      ...(keys.length > 0 && rest.status === undefined && { status: 'ready' }),
    } as Record<string, unknown>;
  });

interface Document {
  readonly kind: string;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Returns the custom domains that are verified and have a key. */
export function customDomainsOf(documents: readonly Document[]): CustomDomain[] {
  return documents.flatMap(({ kind, body }) => {
    const { domain, status, api_key_hashes: hashes, custom_client_ip_header: header } = body;
    const isInForce = kind === 'custom-domain' && status === 'ready' && Array.isArray(hashes);
    if (!isInForce || typeof domain !== 'string') return [];
    const ipHeader =
      typeof header === 'string' && header !== '' ? { clientIpHeader: header.toLowerCase() } : {};
    const metadata = { ...(body.domain_metadata as object | undefined) };
    return [{ domain: domain.toLowerCase(), keyHashes: hashes.map(String), metadata, ...ipHeader }];
  });
}
