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

/** The addresses in a connection's options that the server calls. */
export function calledOptions(options: object): { name: string; url: string }[] {
  return CALLED.flatMap((name) => {
    const url = (options as Record<string, unknown>)[name];
    return typeof url === 'string' ? [{ name, url }] : [];
  });
}

/**
 * Addresses of this machine that may not be called.
 * @param opened what the operator opens (`OUTBOUND_ALLOW`).
 */
export function closedAddresses({ connections }: TenantFile, opened: readonly string[]): string[] {
  const rules = outboundRules(opened);
  return connections.flatMap(({ options }, index) =>
    calledOptions(options).flatMap(({ name, url }) => {
      const host = URL.parse(url)?.hostname;
      const address = host === undefined ? undefined : LOOPBACK[host];
      if (host === undefined || address === undefined || rules.mayConnect(host, address)) return [];
      return [
        `connections[${index}].options.${name}: ${host} is not called in production without OUTBOUND_ALLOW`,
      ];
    }),
  );
}
