// Addresses of connections that a server of production will never call: told at its start, and not at the first login.
import { outboundRules } from '../http/outbound-rules.ts';
import type { TenantFile } from '../records/tenant.ts';

/** The options that name an address which the server itself calls. */
const CALLED = [
  'tokenURL',
  'userInfoURL',
  'discovery_url',
  'token_endpoint',
  'userinfo_endpoint',
  'jwks_uri',
  'metadataUrl',
] as const;

const LOOPBACK: Readonly<Record<string, string>> = {
  localhost: '127.0.0.1',
  '127.0.0.1': '127.0.0.1',
  '[::1]': '::1',
};

/**
 * Addresses of this machine that may not be called.
 * @param opened what the operator opens (`OUTBOUND_ALLOW`).
 */
export function closedAddresses({ connections }: TenantFile, opened: readonly string[]): string[] {
  const rules = outboundRules(opened);
  return connections.flatMap(({ options }, index) =>
    CALLED.flatMap((name) => {
      const value = (options as Record<string, unknown>)[name];
      const host = typeof value === 'string' ? URL.parse(value)?.hostname : undefined;
      const address = host === undefined ? undefined : LOOPBACK[host];
      if (host === undefined || address === undefined || rules.mayConnect(host, address)) return [];
      return [
        `connections[${index}].options.${name}: ${host} is not called in production without OUTBOUND_ALLOW`,
      ];
    }),
  );
}
