// What a request passes before anything behind believes a word of it: whose headers it brings, and its address.
import type { Middleware } from 'koa';
import { behindProxy, proxyTrust } from '../http/proxy.ts';
import { requestTarget } from '../http/request-target.ts';
import type { Config } from '../tenant/config.ts';
import type { ClientCertificates } from './client-certificates.ts';
import { edgeHeaders } from './edge.ts';
import type { TlsSettings } from './options.ts';

interface DoorDependencies {
  tls: TlsSettings;
  config: Pick<Config, 'customDomains'>;
  certificates: ClientCertificates;
  /** Paths that may come by plain HTTP. */
  probes: readonly string[];
}

/** Whether an address is that of a trusted proxy: none is where there is no proxy. */
export function trustedBy(tls: TlsSettings): (address: string) => boolean {
  return tls.mode === 'proxy' ? proxyTrust(tls.trustedProxies) : () => false;
}

/** The middleware, in order. */
export function door({ tls, config, certificates, probes }: DoorDependencies): Middleware[] {
  const { customDomains } = config;
  if (tls.mode !== 'proxy') {
    return [edgeHeaders({ customDomains, certificates, isTrusted: () => true }), requestTarget()];
  }
  const { trustedProxies } = tls;
  return [
    edgeHeaders({ customDomains, certificates, isTrusted: trustedBy(tls) }),
    requestTarget(),
    behindProxy(trustedProxies, probes),
  ];
}
