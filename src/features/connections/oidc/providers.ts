// Reads the discovery documents (OpenID Connect Discovery 1.0) and key sets (RFC 7517) of OpenID providers when they are needed,
// and caches them.
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import type { Outbound } from '../../../http/outbound/outbound.ts';
import type { Clock } from '../../../runtime/clock.ts';
import { keepLatest } from '../../../runtime/latest.ts';
import { MAX_DOCUMENT_BYTES, type Metadata } from './metadata.ts';

export interface OpenIdProviders {
  /**
   * @param address the issuer, or the URL of the document.
   * @throws errors of openid-client if it cannot be read, or has another issuer.
   */
  metadata(address: string): Promise<Metadata>;
  /**
   * Returns a function that finds the key of a token. If the cached key set does not have it, the set is read again, but at most
   * once a minute.
   */
  keysOf(jwksUri: string): JWTVerifyGetKey;
}

interface ProvidersDependencies {
  fetch: Outbound['fetch'];
  /** Elapsed time. */
  clock: Clock;
}

/** How long a document or key set is used before it is read again, milliseconds. */
const FRESH = { metadata: 3_600_000, keys: 600_000 };
/** How long an old one is used if the provider does not answer, milliseconds. */
const STALE = 86_400_000;
/**
 * The least time between two reads of a key set because of a missing key, milliseconds. Anybody can send tokens with unknown
 * keys, which must not cause a request each.
 */
const SEARCH_INTERVAL = 60_000;
/** Number of documents, and of key sets, that are cached. */
const MAX_CACHED = 1_000;

interface CacheEntry<T> {
  value: T;
  readAt: number;
  /** When the set was last read because of a missing key. */
  searchedAt?: number;
}

export function openIdProviders({ fetch, clock }: ProvidersDependencies): OpenIdProviders {
  const metadata = cacheOf(clock, FRESH.metadata, async (address) => {
    const { discover } = await import('./client.ts');
    return discover(fetch, address);
  });
  const keys = cacheOf(clock, FRESH.keys, (uri) => readKeys(fetch, uri));
  return {
    metadata: async (address) => (await metadata.get(address)).value,
    keysOf: (uri) => async (header, token) => {
      const cached = await keys.get(uri);
      try {
        return await createLocalJWKSet(cached.value)(header, token);
      } catch (thrown) {
        if (!(thrown instanceof errors.JWKSNoMatchingKey)) throw thrown;
        const { searchedAt = Number.NEGATIVE_INFINITY } = cached;
        if (clock() - searchedAt < SEARCH_INTERVAL) throw thrown;
        cached.searchedAt = clock();
        const refreshed = await keys.read(uri, cached.searchedAt);
        return createLocalJWKSet(refreshed.value)(header, token);
      }
    },
  };
}

/** Returns a cache of values by their URL. Concurrent callers share one request. */
function cacheOf<T>(clock: Clock, fresh: number, load: (address: string) => Promise<T>) {
  const cache = new Map<string, CacheEntry<T>>();
  const pending = new Map<string, Promise<CacheEntry<T>>>();
  const fetchEntry = async (address: string, searchedAt?: number): Promise<CacheEntry<T>> => {
    const value = await load(address);
    const entry = { value, readAt: clock(), ...(searchedAt !== undefined && { searchedAt }) };
    keepLatest(cache, MAX_CACHED, address, entry);
    return entry;
  };
  const read = (address: string, searchedAt?: number): Promise<CacheEntry<T>> => {
    const inProgress = pending.get(address);
    if (inProgress !== undefined) return inProgress;
    const started = fetchEntry(address, searchedAt).finally(() => pending.delete(address));
    pending.set(address, started);
    return started;
  };
  return {
    read,
    get: async (address: string): Promise<CacheEntry<T>> => {
      const entry = cache.get(address);
      if (entry !== undefined && clock() - entry.readAt < fresh) return entry;
      return read(address).catch((thrown: unknown) => {
        if (entry === undefined || clock() - entry.readAt > STALE) throw thrown;
        return entry;
      });
    },
  };
}

async function readKeys(fetch: Outbound['fetch'], uri: string): Promise<JSONWebKeySet> {
  const response = await fetch(uri, {
    headers: { accept: 'application/json' },
    redirect: 'manual',
    maxBytes: MAX_DOCUMENT_BYTES,
  });
  if (response.status !== 200) throw new Error(`the keys are answered with status ${response.status}`);
  const set = (await response.json()) as JSONWebKeySet;
  // This throws if the response is not a key set.
  createLocalJWKSet(set);
  return set;
}
