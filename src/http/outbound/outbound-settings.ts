// Which addresses the server may call, and who resolves names.
import { isIP } from 'node:net';
import { list, settingsGroup } from '../../runtime/settings-group.ts';
import { isOutboundEntry } from './outbound.ts';

export interface OutboundSettings {
  /**
   * Hosts and ranges that requests to addresses which users or applications name may reach beside the public Internet.
   */
  outboundAllow?: readonly string[] | undefined;
  /** DNS servers that verify custom domains; undefined for those of the system. */
  dnsServers?: readonly string[] | undefined;
}

/**
 * Reports whether a text is the address of a DNS server: `192.0.2.1`, `192.0.2.1:5353`, `2001:db8::1` or
 * `[2001:db8::1]:5353`. One with a zone (`fe80::1%eth0`) is none: Node's resolver drops the zone, and then reaches
 * nothing.
 */
function isServerAddress(text: string): boolean {
  const [, inBrackets, plain = '', port = '53'] =
    /^(?:\[([^\]]+)\]|([\d.]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  if (text.includes('%')) return false;
  const isPort = Number(port) >= 1 && Number(port) <= 65_535;
  return (isIP(inBrackets ?? plain) !== 0 && isPort) || isIP(text) === 6;
}

export const outboundSettings = settingsGroup({
  variables: {
    OUTBOUND_ALLOW: list(isOutboundEntry, 'host name, IP address or CIDR range').optional().meta({
      description:
        'comma-separated hosts, addresses and CIDR ranges that the server may call in addition to the public Internet, by http too; see [outgoing-requests.md](../do/outgoing-requests.md)',
      fallback: 'loopback in development, none in production',
    }),
    DNS_SERVERS: list(isServerAddress, 'IP address, with or without a port').optional().meta({
      description: 'comma-separated addresses of the DNS servers that verify the ownership of custom domains',
      fallback: "the system's servers",
    }),
  },
  settings: (own): OutboundSettings => ({ outboundAllow: own.OUTBOUND_ALLOW, dnsServers: own.DNS_SERVERS }),
});
