// Fetches the metadata of SAML identity providers from its URL when it is needed, and caches it.
import { OutboundError } from '../../../http/outbound/outbound-error.ts';
import { type UpstreamDependencies, upstreamFault } from '../redirect.ts';
import { type ProviderMetadata, readMetadata, type SamlMetadata } from './metadata-import.ts';

/**
 * How long fetched metadata is used before it is fetched again, milliseconds. Providers publish a new key for longer than this
 * before they sign with it.
 */
const FRESH = 3_600_000;
/** How long it is used if the provider does not answer, milliseconds. */
const STALE = 86_400_000;
/** Bytes. */
const MAX_METADATA_BYTES = 1024 * 1024;

/** Texts that are kept as read. */
const MAX_TEXTS = 100;

type MetadataDependencies = Pick<UpstreamDependencies, 'fetch' | 'clock' | 'xml'>;

/** Creates the cache of the metadata of a tenant's providers. Concurrent callers share one request. */
export function samlMetadata(deps: MetadataDependencies): SamlMetadata {
  const cache = new WeakMap<object, { fetchedAt: number; metadata: Promise<ProviderMetadata> }>();
  const texts = new Map<string, Promise<ProviderMetadata>>();
  return {
    in: (text) => {
      const known = texts.get(text);
      if (known !== undefined) return known;
      const metadata = readMetadata(deps.xml, text);
      texts.set(text, metadata);
      metadata.catch(() => texts.delete(text));
      for (const oldest of texts.keys()) {
        if (texts.size <= MAX_TEXTS) break;
        texts.delete(oldest);
      }
      return metadata;
    },
    of: (options, url) => {
      const cached = cache.get(options);
      if (cached !== undefined && deps.clock() - cached.fetchedAt < FRESH) return cached.metadata;
      const metadata = fetchMetadata(deps, url).catch((thrown: unknown) => {
        cache.delete(options);
        if (cached === undefined || deps.clock() - cached.fetchedAt > STALE) throw thrown;
        // Logins that wait for this request use the previous metadata, too; the next login tries again.
        cache.set(options, cached);
        return cached.metadata;
      });
      cache.set(options, { fetchedAt: deps.clock(), metadata });
      return metadata;
    },
  };
}

/** @throws AuthError by {@link upstreamFault} if it cannot be fetched, 400 if it is not metadata. */
export async function fetchMetadata(
  { fetch, xml }: Pick<UpstreamDependencies, 'fetch' | 'xml'>,
  url: string,
): Promise<ProviderMetadata> {
  const response = await fetch(url, { maxBytes: MAX_METADATA_BYTES }).catch((thrown: unknown) => {
    const reason = thrown instanceof OutboundError ? thrown.failure : 'unreachable';
    throw upstreamFault(
      'invalid_request',
      `The metadata of the identity provider cannot be fetched: ${reason}.`,
      thrown,
    );
  });
  if (!response.ok) {
    throw upstreamFault(
      'invalid_request',
      `The metadata of the identity provider cannot be fetched: status ${response.status}.`,
    );
  }
  return readMetadata(xml, await response.text());
}
