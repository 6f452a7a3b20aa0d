// Which addresses the lists of an application allow: its callbacks, its logout URLs, and the origins of its pages. This is
// the one place that compares an address with an entry of them.
// docs/understand/decisions/authorize.md#an-entry-of-a-list-of-urls-is-compared-as-text-and-may-have-one-wildcard
import { createRequire } from 'node:module';
import { isLoopback } from '../../http/loopback.ts';
import { hasForbiddenScheme, isCallback } from '../../http/schemes.ts';

/** The lists, as members of an application's record; the tenant has `allowed_logout_urls` as well. */
export const URL_LISTS = ['callbacks', 'allowed_logout_urls', 'allowed_origins', 'web_origins'] as const;

/** The placeholder of the name of the organization that a user logs in to. */
const ORGANIZATION_NAME = '{organization_name}';

/** The members of an application's record that say which entries count. */
export interface ListOwner {
  readonly app_type?: string | undefined;
  readonly is_first_party?: boolean | undefined;
  readonly organization_usage?: 'deny' | 'allow' | 'require' | undefined;
}

/** The name of the organization of the transaction; undefined without one. */
type Organization = { readonly name: string } | undefined;

/** An entry that stands for many addresses: a text before and a text after one part of the leftmost label of a host. */
interface Pattern {
  kind: 'wildcard' | 'organization';
  scheme: string;
  /** What precedes and follows the part in its label. */
  start: string;
  end: string;
  /** The labels after it, in lower case, with their dot. */
  base: string;
}

/** One label with one mark in it, at least one further label, a port, and the rest. */
const PATTERN =
  /^(https?):\/\/([a-z\d-]*)(\*|\{organization_name\})([a-z\d-]*)((?:\.[a-z\d_-]+)+)(?::\d{1,5})?(?:[/?#].*)?$/is;

/** A host label (RFC 1123 §2.1). */
const LABEL = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/i;
/** What a wildcard stands for. No separator of a URL is in it, so the rest of the address is what the entry says. */
const WILDCARD_PART = /^[a-z\d-]{1,63}$/;
/** Names of organizations that are a host label, in which browsers allow `_`. */
const NAME_LABEL = /^[a-z\d](?:[a-z\d_-]{0,61}[a-z\d_])?$/;

const AUTHORITY = /^[a-z][a-z\d+.-]*:\/\/([^/?#]*)/i;

/** Returns the list of public suffixes, which is loaded when the first pattern is used, not at each start. */
const publicSuffixes = () => createRequire(import.meta.url)('tldts') as typeof import('tldts');

/**
 * Whether everybody can have a name below a host: a registry's suffix such as `co.uk`, or that of a provider, such as
 * `github.io` (the private section of the Public Suffix List). Names that no list knows, such as `internal`, are suffixes.
 */
const isPublicSuffix = (host: string): boolean => registrableDomain(host) === undefined;

/** Returns the domain that somebody has registered for a host; undefined for a public suffix and an address. */
export const registrableDomain = (host: string): string | undefined =>
  publicSuffixes().getDomain(host, { allowPrivateDomains: true }) ?? undefined;

/** Whether a name is that of a host below a suffix that the Public Suffix List knows: `node.js` is none. */
export function isListedHost(host: string): boolean {
  const { domain, isIcann, isPrivate } = publicSuffixes().parse(host, { allowPrivateDomains: true });
  return domain !== null && (isIcann === true || isPrivate === true);
}

/** Returns the pattern that an entry is; undefined for any other entry, and for a pattern that is not allowed. */
function patternOf(entry: string): Pattern | undefined {
  const found = PATTERN.exec(entry);
  if (found === null || marksIn(entry) !== 1) return undefined;
  const [, scheme = '', start = '', mark, end = '', suffix = ''] = found;
  const kind = mark === '*' ? 'wildcard' : 'organization';
  if (kind === 'organization' && start + end !== '') return undefined;
  const base = suffix.toLowerCase();
  const host = base.slice(1);
  // Nobody but this machine answers below localhost (RFC 6761 §6.3).
  const isUsable = isHost(`a${base}`) && (isLoopback(host) || !isPublicSuffix(host));
  return isUsable ? { kind, scheme: scheme.toLowerCase(), start, end, base } : undefined;
}

const marksIn = (entry: string): number => entry.split(/\*|\{organization_name\}/).length - 1;

/** Whether browsers take a text for a host name as it is: no address, and nothing that they would change. */
const isHost = (text: string): boolean => URL.parse(`https://${text}`)?.hostname === text;

/**
 * Whether an entry is compared as the text that it is: a star means nothing outside of the host, as at the hosted service.
 * An entry that is neither this nor a pattern matches nothing.
 */
function isLiteral(entry: string): boolean {
  if (!entry.includes('*') && !entry.includes('{')) return true;
  const authority = AUTHORITY.exec(entry)?.[1] ?? '';
  return URL.canParse(entry) && !/[*{}]/.test(authority) && !entry.includes(ORGANIZATION_NAME);
}

/** Returns whether an entry stands for more than one address, or for none. */
export const isPattern = (entry: string): boolean => !isLiteral(entry);

/** Whether an address has a wildcard in its host, or the placeholder of a name. */
export const hasMark = (address: string): boolean =>
  (AUTHORITY.exec(address)?.[1] ?? '').includes('*') || address.includes(ORGANIZATION_NAME);

/** Returns why an entry matches nothing in an application, though it may be there; undefined where it matches something. */
export function idleReason(
  entry: string,
  { is_first_party: isFirstParty, organization_usage: usage = 'deny' }: ListOwner,
): string | undefined {
  if (isLiteral(entry)) return undefined;
  const pattern = patternOf(entry);
  if (pattern === undefined) return entryFault(entry) ?? 'its placeholder has no value here';
  if (isFirstParty === false) return 'URLs of third-party applications have no wildcards and placeholders';
  return pattern.kind === 'organization' && usage === 'deny'
    ? 'organization_usage of the application is neither allow nor require'
    : undefined;
}

/** Returns the wildcards in force in the lists of an application or the tenant, each once. */
export function wildcardsOf(
  owner: ListOwner & { readonly [list in (typeof URL_LISTS)[number]]?: readonly string[] },
): string[] {
  const entries = owner.is_first_party === false ? [] : URL_LISTS.flatMap((list) => owner[list] ?? []);
  return [...new Set(entries)].filter((entry) => patternOf(entry)?.kind === 'wildcard');
}

/** Returns the first entry that is one address, for where there is no choice. */
export const firstAddress = (list: readonly string[]): string | undefined => list.find(isLiteral);

/**
 * Returns why a list must not have an entry; undefined where it may.
 * @param isTenants whether the list is the tenant's, where no application says whether it is for organizations.
 */
export function entryFault(entry: string, { isTenants = false } = {}): string | undefined {
  const hasName = entry.includes(ORGANIZATION_NAME);
  const mark = hasName ? ORGANIZATION_NAME : '*';
  const authority = AUTHORITY.exec(entry)?.[1];
  const hasStar =
    authority === undefined ? !isLiteral(entry) && entry.includes('*') : authority.includes('*');
  if (!hasName && !hasStar) return undefined;
  if (hasName && isTenants) return `${mark} is for the lists of applications`;
  if (patternOf(entry) !== undefined) return undefined;
  if (!/^https?:\/\//i.test(entry)) return `${mark} needs http:// or https:// before the host`;
  if (marksIn(entry) > 1) return 'there can be one wildcard or placeholder';
  const [, , start = '', , end = '', base = ''] = PATTERN.exec(entry) ?? [];
  if (base === '') return `${mark} must be in the first label of a host name that has at least two more`;
  if (hasName && start + end !== '') return `${mark} must be a whole label`;
  return isHost(`a${base.toLowerCase()}`)
    ? `anybody can have a name below the public suffix ${base.slice(1)}`
    : `${base.slice(1)} is no host name`;
}

// Comparing.

/** Returns the part of an address that a pattern's mark stands for; undefined where it differs anywhere else. */
function partOf(address: string, entry: string): string | undefined {
  const star = entry.indexOf('*');
  const at = star === -1 ? entry.indexOf(ORGANIZATION_NAME) : star;
  const after = at + (star === -1 ? ORGANIZATION_NAME.length : 1);
  const length = address.length - entry.length + after - at;
  if (at === -1 || length < 1 || length > 63) return undefined;
  if (!address.startsWith(entry.slice(0, at)) || !address.endsWith(entry.slice(after))) return undefined;
  return address.slice(at, at + length);
}

/**
 * Whether an address is the text that an entry is, or one that its pattern stands for. Most entries are told apart by their
 * texts, so that the list of suffixes is asked about those alone that would match.
 */
function isEntry(address: string, entry: string, owner: ListOwner, organization: Organization): boolean {
  if (address === entry) return isLiteral(entry);
  const part = partOf(address, entry);
  if (part === undefined || owner.is_first_party === false) return false;
  const pattern = patternOf(entry);
  if (pattern === undefined) return false;
  const { kind, start, end, base } = pattern;
  const label = `${start}${part}${end}`;
  const isMeant =
    kind === 'wildcard'
      ? WILDCARD_PART.test(part) && LABEL.test(label)
      : NAME_LABEL.test(part) && part === nameFor(owner, organization);
  // The browser must go to the host that was compared.
  return isMeant && URL.parse(address)?.hostname === `${label.toLowerCase()}${base}`;
}

/** Returns what a placeholder stands for, where users of the application log in to organizations. Browsers send small letters. */
function nameFor({ organization_usage: usage = 'deny' }: ListOwner, organization: Organization) {
  return usage === 'deny' ? undefined : organization?.name.toLowerCase();
}

/** A loopback address with plain http as it is written in a URL; `localhost` is none, because it may resolve to another host. */
const LOOPBACK = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]))(?::\d{1,5})?(?=[/?#]|$)/;

/**
 * Returns a text without the port that the system gives a native application on the loopback interface (RFC 8252 §7.3), so
 * that any port there equals any other.
 */
const withoutPort = (text: string): string => text.replace(LOOPBACK, '$1');

/**
 * Whether an address is one of an application's callbacks.
 * @param organization that of the request, if it is for one.
 */
export function isCallbackOf(
  client: ListOwner & { readonly callbacks: readonly string[] },
  address: string,
  organization?: Organization,
): boolean {
  const { callbacks, app_type: type } = client;
  if (callbacks.some((entry) => isEntry(address, entry, client, organization))) return true;
  // docs/understand/decisions/sessions-logout.md#allowed_logout_urls-of-native-applications-are-compared-as-their-callbacks
  if (type !== 'native' || !LOOPBACK.test(address) || !isCallback(address)) return false;
  return callbacks.some((one) => LOOPBACK.test(one) && withoutPort(one) === withoutPort(address));
}

/** The members of an application's record that name the origins of its pages. */
export type PageOwner = ListOwner & {
  readonly [list in 'callbacks' | 'allowed_origins' | 'web_origins']: readonly string[];
};

/** Returns the entries of an application's origins: its allowed and web origins, and those of its callbacks. */
export function originsOf(client: PageOwner): string[] {
  const callbacks = client.callbacks.flatMap((callback) => URL.parse(callback)?.origin ?? []);
  // `null` is the origin of every custom scheme and every sandboxed page, so it identifies no application.
  return [...client.allowed_origins, ...client.web_origins, ...callbacks].filter(
    (origin) => origin !== '' && origin !== 'null',
  );
}

/**
 * Whether an origin is that of an application's pages.
 * @param organization that of the request, if it is for one.
 */
export function isOriginOf(client: PageOwner, origin: string, organization?: Organization): boolean {
  return originsOf(client).some((entry) => isEntry(origin, entry, client, organization));
}

/**
 * Returns a test for the origins of all applications' pages, for requests of which nothing but the origin is known.
 * @param organizationNamed an organization counts here if there is one: only a page that is asked for names it.
 */
export function originTest(
  clients: readonly PageOwner[],
  organizationNamed: (name: string) => Organization,
): (origin: string) => boolean {
  const literal = new Set<string>();
  const patterns = new Map<string, PageOwner[]>();
  for (const client of clients)
    for (const entry of originsOf(client)) {
      if (isLiteral(entry)) literal.add(entry);
      else patterns.set(entry, [...(patterns.get(entry) ?? []), client]);
    }
  return (origin) =>
    literal.has(origin) ||
    [...patterns].some(([entry, owners]) => {
      const part = partOf(origin, entry);
      if (part === undefined) return false;
      const organization = entry.includes('*') ? undefined : organizationNamed(part);
      return owners.some((owner) => isEntry(origin, entry, owner, organization));
    });
}

/** Whether query and fragment are compared, too. */
export type Matching = 'whole' | 'without-query';

/** Scheme, host, port and rest of a web address as it is written; no user name, and nothing encoded in the host. */
const WEB_URL =
  /^(https?:\/\/(?:[a-z\d._-]+|\[[\da-f:.]+\])(?::\d{1,5})?)((?:\/[^?#]*)?)((?:\?[^#]*)?(?:#.*)?)$/i;
/** The same of an entry, whose host may have a mark. */
const WEB_ENTRY = /^(https?:\/\/[^/?#]*)((?:\/[^?#]*)?)((?:\?[^#]*)?(?:#.*)?)$/i;

/** Characters that browsers strip or treat as separators: control characters, white space, backslashes. */
const UNSAFE_CHARACTERS = /[\p{Cc}\p{Cf}\p{Z}\\]/u;

/**
 * Whether an address is one of the logout URLs of an application or of the tenant. Scheme and host are compared in any case.
 * A URL with a private-use scheme (`com.example.app://out`) must equal an entry exactly (RFC 8252 §7.1).
 * @param matching `whole`: query and fragment must equal the entry's; `without-query`: they are ignored.
 * @param organization that of the session, or of the ID token that the request has.
 */
export function isLogoutUrlOf(
  owner: ListOwner & { readonly allowed_logout_urls: readonly string[] },
  address: string,
  matching: Matching,
  organization?: Organization,
): boolean {
  if (UNSAFE_CHARACTERS.test(address)) return false;
  const parsed = URL.parse(address);
  if (parsed === null || hasForbiddenScheme(parsed)) return false;
  const list = owner.allowed_logout_urls;
  const text = comparable(WEB_URL, address, matching);
  if (text === undefined) return !/^https?:$/.test(parsed.protocol) && list.includes(address);
  // The browser must see the same host that was compared.
  if (parsed.hostname !== hostOf(text)) return false;
  const isNative = owner.app_type === 'native';
  return list.some((entry) => {
    const listed = comparable(WEB_ENTRY, entry, matching);
    if (listed === undefined) return false;
    if (isEntry(text, listed, owner, organization)) return true;
    return (
      isNative && LOOPBACK.test(text) && LOOPBACK.test(listed) && withoutPort(text) === withoutPort(listed)
    );
  });
}

/** Returns what is compared of a web address: its scheme and host in lower case. */
function comparable(form: RegExp, address: string, matching: Matching): string | undefined {
  const found = form.exec(address);
  if (found === null) return undefined;
  const [, origin = '', path = '', rest = ''] = found;
  return `${origin.toLowerCase()}${path}${matching === 'whole' ? rest : ''}`;
}

const hostOf = (text: string): string => /^https?:\/\/(\[[^\]]*\]|[^:/?#]*)/.exec(text)?.[1] ?? '';
