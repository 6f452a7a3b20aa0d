// Addresses of connections that a production server refuses to call, reported at start and not at the first login.
import { outboundRules } from '../http/outbound/outbound.ts';
import type { TenantFile } from '../records/tenant/tenant.ts';

const CALLED_OPTIONS = [
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

export function calledOptions(options: object): { name: string; url: string }[] {
  return CALLED_OPTIONS.flatMap((name) => {
    const url = (options as Record<string, unknown>)[name];
    return typeof url === 'string' ? [{ name, url }] : [];
  });
}

/**
 * Returns faults for addresses of this machine that must not be called.
 * @param allowed hosts that the operator allows (`OUTBOUND_ALLOW`).
 */
export function closedAddresses({ connections }: TenantFile, allowed: readonly string[]): string[] {
  const rules = outboundRules(allowed);
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
