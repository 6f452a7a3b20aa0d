// Decides where a browser may be sent after a logout: only to URLs on the allow-lists. Strings are compared, not
// parsed URLs, so that two parsers cannot disagree about a URL.
// docs/understand/decisions/sessions-logout.md#redirect-urls-of-a-logout-are-compared-as-they-are-written
import { hasForbiddenScheme } from '../../http/schemes.ts';

/** Whether query and fragment are compared, too. */
type Matching = 'whole' | 'without-query';

/** The parts of a URL as it is written; nothing is decoded or normalized. */
interface UrlParts {
  scheme: string;
  host: string;
  port: string;
  path: string;
  query: string;
  fragment: string;
}

const WEB_URL = /^(https?):\/\/(\*\.)?([a-z0-9.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?(\/[^?#]*)?(\?[^#]*)?(#.*)?$/i;

/** Characters that browsers strip or treat as separators: control characters, white space, backslashes. */
const UNSAFE_CHARACTERS = /[\p{Cc}\p{Cf}\p{Z}\\]/u;

/**
 * Whether a URL is in an allow-list. Scheme, host, port and path must equal the entry's, scheme and host in any
 * case; a leading `*.` of an entry stands for exactly one host label, with https only. A URL with a private-use
 * scheme (`com.example.app://out`) must equal an entry exactly (RFC 8252 §7.1).
 * @param matching `whole`: query and fragment must equal the entry's; `without-query`: they are ignored.
 * @param options `anyLoopbackPort`: for a native application, which listens on a port that the system gives it (RFC 8252
 * §7.3); as for its callbacks, the port of a loopback address with plain http is not compared then.
 */
export function isAllowed(
  address: string,
  list: readonly string[],
  matching: Matching,
  { anyLoopbackPort = false }: { anyLoopbackPort?: boolean } = {},
): boolean {
  if (UNSAFE_CHARACTERS.test(address)) return false;
  const parsed = URL.parse(address);
  if (parsed === null || hasForbiddenScheme(parsed)) return false;
  const web = parseWebUrl(address);
  if (web === undefined) {
    return parsed.protocol !== 'https:' && parsed.protocol !== 'http:' && list.includes(address);
  }
  // The browser must see the same host that was compared.
  if (parsed.hostname !== web.host || web.host.startsWith('*')) return false;
  return list.some((entry) => matches(web, parseWebUrl(entry), { matching, anyLoopbackPort }));
}

/** Returns how the ports of an application's addresses are compared. */
export function portsOf({ app_type }: { app_type?: string | undefined }): { anyLoopbackPort: boolean } {
  return { anyLoopbackPort: app_type === 'native' };
}

/** Returns the first entry of an allow-list that is a URL and no pattern. */
export function firstUsable(list: readonly string[]): string | undefined {
  return list.find((entry) => isAllowed(entry, [entry], 'whole'));
}

function parseWebUrl(address: string): UrlParts | undefined {
  const found = WEB_URL.exec(address);
  if (found === null) return undefined;
  const [, scheme = '', wildcard = '', host = '', port = '', path = '', query = '', fragment = ''] = found;
  return {
    scheme: scheme.toLowerCase(),
    host: `${wildcard}${host.toLowerCase()}`,
    port,
    path,
    query,
    fragment,
  };
}

/** The loopback addresses that RFC 8252 §7.3 names; `localhost` is none, because it may resolve to another host. */
const LOOPBACK_HOSTS = ['127.0.0.1', '[::1]'];

function matches(
  address: UrlParts,
  entry: UrlParts | undefined,
  { matching, anyLoopbackPort }: { matching: Matching; anyLoopbackPort: boolean },
): boolean {
  if (entry === undefined) return false;
  return (
    address.scheme === entry.scheme &&
    hostMatches(address, entry) &&
    (address.port === entry.port ||
      (anyLoopbackPort && address.scheme === 'http' && LOOPBACK_HOSTS.includes(address.host))) &&
    address.path === entry.path &&
    (matching === 'without-query' || (address.query === entry.query && address.fragment === entry.fragment))
  );
}

/** A wildcard such as `*.example.test`: at least two labels follow, so that `*.com` matches nothing. */
const WILDCARD = /^\*(\.[a-z0-9-]+(?:\.[a-z0-9-]+)+)$/;
const LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;

function hostMatches({ host }: UrlParts, entry: UrlParts): boolean {
  if (host === entry.host) return true;
  const base = WILDCARD.exec(entry.host)?.[1];
  if (base === undefined || entry.scheme !== 'https' || !host.endsWith(base)) return false;
  return LABEL.test(host.slice(0, -base.length));
}
