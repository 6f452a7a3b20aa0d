// The process's settings, read once from the environment (design.md §5).
export type TlsSettings =
  | { mode: 'auto' }
  | { mode: 'files'; certFile: string; keyFile: string }
  | { mode: 'proxy'; trustedProxies: string[] };

export interface Settings {
  port: number;
  host: string;
  /** The public origin, without a slash at its end. */
  baseUrl: string;
  /** The issuer: the public origin with a slash at its end. */
  issuer: string;
  tenantFile: string;
  dataDir: string;
  tls: TlsSettings;
  production: boolean;
  logLevel: string;
}
