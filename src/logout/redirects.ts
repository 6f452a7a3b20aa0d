// Where a browser may be sent after a logout: to addresses of the allow-lists and nowhere else. The strings
// are compared, not what a URL parser makes of them, so that no two readings of an address can differ.
import { hasForbiddenScheme } from '../http/schemes.ts';

/** Whether a query and a fragment of the address count, or everything up to them. */
export type Matching = 'whole' | 'without-query';

/** An address taken apart as it is written; nothing is decoded or normalized. */
interface Address {
  scheme: string;
  host: string;
  port: string;
  path: string;
  query: string;
  fragment: string;
}

const WEB = /^(https?):\/\/(\*\.)?([a-z0-9.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?(\/[^?#]*)?(\?[^#]*)?(#.*)?$/i;

/** What browsers drop, turn round, or take for a separator: control characters, white space, backslashes. */
const SLIPPERY = /[\p{Cc}\p{Cf}\p{Z}\\]/u;

/**
 * Whether an address is in an allow-list. Scheme, host, port and path must be as the entry has them, the
 * scheme and the host in any case; an entry's leading `*.` stands for exactly one label of the host, with
 * https alone. An address with a scheme of its own (`com.example.app://out`) must be an entry, letter by letter.
 * @param matching `whole`: query and fragment must be the entry's; `without-query`: the address's are free.
 */
export function isAllowed(address: string, list: readonly string[], matching: Matching): boolean {
  if (SLIPPERY.test(address)) return false;
  const parsed = URL.parse(address);
  if (parsed === null || hasForbiddenScheme(parsed)) return false;
  const web = readWeb(address);
  if (web === undefined) {
    return parsed.protocol !== 'https:' && parsed.protocol !== 'http:' && list.includes(address);
  }
  // A browser must see the very host that was compared.
  if (parsed.hostname !== web.host || web.host.startsWith('*')) return false;
  return list.some((entry) => matches(web, readWeb(entry), matching));
}

/** The first entry of an allow-list that a browser can be sent to: one with a `*` is no address. */
export function firstUsable(list: readonly string[]): string | undefined {
  return list.find((entry) => isAllowed(entry, [entry], 'whole'));
}

function readWeb(address: string): Address | undefined {
  const found = WEB.exec(address);
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

function matches(address: Address, entry: Address | undefined, matching: Matching): boolean {
  if (entry === undefined) return false;
  return (
    address.scheme === entry.scheme &&
    hostMatches(address, entry) &&
    address.port === entry.port &&
    address.path === entry.path &&
    (matching === 'without-query' || (address.query === entry.query && address.fragment === entry.fragment))
  );
}

/** `*.example.test`: one label, of a name of at least two others, so that no registry's `*.com` lets all in. */
const WILDCARD = /^\*(\.[a-z0-9-]+(?:\.[a-z0-9-]+)+)$/;
const LABEL = /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/;

function hostMatches({ host }: Address, entry: Address): boolean {
  if (host === entry.host) return true;
  const base = WILDCARD.exec(entry.host)?.[1];
  if (base === undefined || entry.scheme !== 'https' || !host.endsWith(base)) return false;
  return LABEL.test(host.slice(0, -base.length));
}
