// The first middleware: checks and removes the headers of edges and proxies, and finds the client's address. Everything
// after it may rely on both.
import type { Middleware } from 'koa';
import { behindProxy, proxyTrust } from '../../http/server/proxy.ts';
import { requestTarget } from '../../http/server/request-target.ts';
import type { Config } from '../../tenant/config.ts';
import type { ClientCertificates } from './client-certificates.ts';
import { edgeOf } from './edge.ts';
import type { TlsSettings } from './tls-settings.ts';

interface TrustedHeadersDependencies {
  tls: TlsSettings['tls'];
  config: Pick<Config, 'customDomains'>;
  certificates: ClientCertificates;
  /** Paths that may be requested by plain HTTP. */
  probes: readonly string[];
}

/** Returns a function that reports whether an address is that of a trusted proxy: none is where there is no proxy. */
export function trustedBy(tls: TlsSettings['tls']): (address: string) => boolean {
  return tls.mode === 'proxy' ? proxyTrust(tls.trustedProxies) : () => false;
}

/** Returns the middleware, in order. */
export function trustedHeaders({
  tls,
  config,
  certificates,
  probes,
}: TrustedHeadersDependencies): Middleware[] {
  const { customDomains } = config;
  const isProxied = tls.mode === 'proxy';
  const isTrusted = isProxied ? trustedBy(tls) : () => true;
  const edge = edgeOf({ customDomains, certificates, isTrusted, isProxied });
  // The edge's headers are judged by the host.
  if (!isProxied) return [requestTarget(), edge.headers, edge.address];
  const { trustedProxies } = tls;
  return [requestTarget(), edge.headers, behindProxy(trustedProxies, probes), edge.address];
}
