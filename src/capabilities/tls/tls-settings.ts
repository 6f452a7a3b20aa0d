// How TLS ends, and where clients are asked for certificates.
import { z } from 'zod';
import { isAddressRange } from '../../http/addresses.ts';
import { list, origin, port, present, settingsGroup } from '../../runtime/settings-group.ts';

export interface TlsSettings {
  tls:
    | { mode: 'auto' }
    | { mode: 'files'; certFile: string; keyFile: string }
    | { mode: 'proxy'; trustedProxies: readonly string[] };
  /** Where clients are asked for certificates; the port may be that of everything else. */
  mtls?: { port: number; caFile?: string | undefined } | undefined;
  /** The public origin for clients with certificates; without it, the base URL at the port of `mtls`. */
  mtlsBaseUrl?: string | undefined;
}

export const tlsSettings = settingsGroup({
  variables: {
    TLS: z.enum(['auto', 'files', 'proxy']).default('auto').meta({
      description:
        '`auto`: a local CA and certificate in `$DATA_DIR/tls`; `files`: `TLS_CERT` and `TLS_KEY`; `proxy`: plain HTTP behind a TLS proxy',
    }),
    TLS_CERT: z
      .string()
      .optional()
      .meta({ description: 'with `TLS=files`: the certificate chain, a PEM file' }),
    TLS_KEY: z
      .string()
      .optional()
      .meta({ description: 'with `TLS=files`: the private key of the certificate, a PEM file' }),
    TRUSTED_PROXIES: list(isAddressRange, 'IP address or CIDR range').optional().meta({
      description:
        'with `TLS=proxy`: addresses and CIDR ranges of the proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are used',
    }),
    MTLS_PORT: port.optional().meta({
      description:
        'the port where clients are asked for certificates (mutual TLS); if it equals `PORT`, everybody is asked',
    }),
    MTLS_CA: z.string().optional().meta({
      description: 'with `MTLS_PORT`: the authorities that sign client certificates, a PEM file',
    }),
    MTLS_BASE_URL: origin('https://mtls.example.com').optional().meta({
      description: 'the public origin where clients are asked for certificates, which discovery shows',
      fallback: "`BASE_URL`'s host at `MTLS_PORT`",
    }),
  },
  faults: (own, { BASE_URL, NODE_ENV }: { BASE_URL?: string | undefined; NODE_ENV: string }) => {
    const faults: string[] = [];
    if (own.TLS === 'files') {
      if (own.TLS_CERT === undefined) faults.push('TLS_CERT: required with TLS=files');
      if (own.TLS_KEY === undefined) faults.push('TLS_KEY: required with TLS=files');
    }
    if (own.TLS === 'proxy') {
      if ((own.TRUSTED_PROXIES ?? []).length === 0) faults.push('TRUSTED_PROXIES: required with TLS=proxy');
      if (BASE_URL === undefined) faults.push('BASE_URL: required with TLS=proxy');
    }
    if (own.MTLS_PORT !== undefined && own.TLS === 'proxy')
      faults.push('MTLS_PORT: with TLS=proxy the proxy asks clients for certificates');
    if (own.MTLS_CA !== undefined && own.MTLS_PORT === undefined)
      faults.push('MTLS_CA: means something with MTLS_PORT alone');
    if (NODE_ENV === 'production' && own.TLS === 'auto')
      faults.push('TLS: auto is for development; use files or proxy in production');
    return faults;
  },
  settings: (own): TlsSettings => ({
    tls: modeOf(own),
    mtls: own.MTLS_PORT === undefined ? undefined : present({ port: own.MTLS_PORT, caFile: own.MTLS_CA }),
    mtlsBaseUrl: own.MTLS_BASE_URL,
  }),
});

function modeOf({
  TLS: mode,
  TLS_CERT: certFile = '',
  TLS_KEY: keyFile = '',
  TRUSTED_PROXIES: trustedProxies = [],
}: {
  TLS: TlsSettings['tls']['mode'];
  TLS_CERT?: string | undefined;
  TLS_KEY?: string | undefined;
  TRUSTED_PROXIES?: readonly string[] | undefined;
}): TlsSettings['tls'] {
  switch (mode) {
    case 'auto':
      return { mode };
    case 'files':
      return { mode, certFile, keyFile };
    case 'proxy':
      return { mode, trustedProxies };
  }
}

/** Returns the public origin where clients are asked for certificates; undefined where it is the base URL. */
export function mtlsOrigin({
  baseUrl,
  port: main,
  mtls,
  mtlsBaseUrl,
}: Pick<TlsSettings, 'mtls' | 'mtlsBaseUrl'> & { baseUrl: string; port: number }): string | undefined {
  if (mtlsBaseUrl !== undefined) return mtlsBaseUrl;
  if (mtls === undefined || mtls.port === main) return undefined;
  const url = new URL(baseUrl);
  url.port = String(mtls.port);
  return url.origin;
}
