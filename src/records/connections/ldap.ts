// The options of directory connections (`ad`, `auth0-adldap`), with the names of the hosted service's own connector.
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { pemBlocks } from '../../runtime/pem-blocks.ts';
import { upstreamOptions, withoutNull } from './upstream.ts';

/** In a filter, stands for the name that was typed, or for the DN of the user whose groups are searched. */
export const PLACEHOLDER = '{0}';

/** Compares the name that was typed with the usual login attributes of directories. */
const USER_BY_NAME_FILTER = '(|(sAMAccountName={0})(userPrincipalName={0})(mail={0})(uid={0}))';

const distinguishedName = z.string().max(1024);

/** Attributes with an id that a directory gives to one entry alone: of AD, RFC 4530, 389 DS and eDirectory. */
export const ENTRY_IDS = ['objectGUID', 'entryUUID', 'nsUniqueId', 'GUID'] as const;

const filter = z
  .string()
  .max(1024)
  .refine((text) => text.includes(PLACEHOLDER), `must contain ${PLACEHOLDER}`)
  .refine(isFilter, 'is no filter (RFC 4515 §3)');

/** A boolean; the connector's own settings are texts. */
const flag = z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')]);

export const ldapOptionsSchema = z.preprocess(
  withoutNull,
  z
    .looseObject({
      ...upstreamOptions,
      /**
       * `ldaps://host[:port]`, or `ldap://host[:port]` with StartTLS. Connections exported from the hosted service
       * have none, because there the connector beside the directory knows the address.
       */
      LDAP_URL: z
        .string()
        .refine(isDirectoryUrl, 'must be ldaps://host[:port] or ldap://host[:port]')
        .optional(),
      LDAP_BASE: distinguishedName.min(1).optional(),
      /** A DN; without it, searches are anonymous. */
      LDAP_BIND_USER: distinguishedName.default(''),
      LDAP_BIND_PASSWORD: z.string().max(1024).default(''),
      LDAP_USER_BY_NAME: filter.default(USER_BY_NAME_FILTER),
      /**
       * Finds the groups of a DN in one search. Without it, groups are found by following `member` and
       * `uniqueMember`.
       */
      LDAP_SEARCH_GROUPS: filter.optional(),
      /** The base of groups. Default: that of users. */
      LDAP_GROUPS_BASE: distinguishedName.optional(),
      GROUPS: flag.default(true),
      /** The attribute with the name of a group. */
      GROUP_PROPERTY: z
        .string()
        .regex(/^[A-Za-z][A-Za-z0-9-]*$/)
        .default('cn'),
      GROUPS_TIMEOUT_SECONDS: z.coerce.number().int().min(1).max(60).default(20),
      /** Whether an `ldap:` connection switches to TLS before anything else is sent. */
      LDAP_STARTTLS: flag.default(true),
      /** Certificates in PEM of issuers that are trusted in addition to the system's. */
      LDAP_CA: z.string().max(65_536).refine(isPem, 'must be certificates in PEM').optional(),
      /**
       * The attribute that tells an entry from all others that the directory ever had. By default `objectGUID` or
       * `entryUUID`, whichever it has.
       */
      LDAP_UNIQUE_ID: z.enum(ENTRY_IDS).optional(),
      /** The attributes for each member of the profile. */
      fieldsMap: z.record(z.string(), z.union([z.string(), z.array(z.string())])).default({}),
      should_trust_email_verified_connection: z
        .enum(['never_set_emails_as_verified', 'always_set_emails_as_verified'])
        .default('never_set_emails_as_verified'),
      brute_force_protection: z.boolean().default(true),
    })
    .refine(({ LDAP_BIND_USER: user, LDAP_BIND_PASSWORD: password }) => (user === '') === (password === ''), {
      path: ['LDAP_BIND_PASSWORD'],
      // A DN without a password is an anonymous bind that looks like an authenticated one (RFC 4513 §5.1.2).
      message: 'LDAP_BIND_USER and LDAP_BIND_PASSWORD go together',
    })
    .refine(({ LDAP_URL: url, LDAP_BASE: base }) => (url === undefined) === (base === undefined), {
      path: ['LDAP_BASE'],
      message: 'LDAP_URL and LDAP_BASE go together',
    }),
);

/** The options of a directory that can be reached. */
export type LdapOptions = z.output<typeof ldapOptionsSchema> & { LDAP_URL: string; LDAP_BASE: string };

/** @returns undefined if the connection has no directory. @throws ZodError if the options are not valid */
export function ldapOptions({ options }: { options: unknown }): LdapOptions | undefined {
  const { LDAP_URL, LDAP_BASE, ...rest } = ldapOptionsSchema.parse(options);
  return LDAP_URL === undefined || LDAP_BASE === undefined ? undefined : { ...rest, LDAP_URL, LDAP_BASE };
}

export function certificatesOf(pem: string): string[] {
  return pemBlocks(pem)
    .filter(({ label }) => label === 'CERTIFICATE')
    .map(({ text }) => text);
}

function isPem(text: string): boolean {
  try {
    return certificatesOf(text).map((one) => new X509Certificate(one)).length > 0;
  } catch {
    return false;
  }
}

function isDirectoryUrl(text: string): boolean {
  const url = URL.parse(text);
  const isPlain = url !== null && url.username === '' && url.password === '' && url.search + url.hash === '';
  return isPlain && /^ldaps?:$/.test(url.protocol) && url.hostname !== '' && ['', '/'].includes(url.pathname);
}

const ITEM = /\([A-Za-z0-9][\w.;-]*(?::dn)?(?::[\w.-]+)?[~<>:]?=(?:[^()\\\0]|\\[0-9a-fA-F]{2})*\)/g;
const COMPOUND = /\((?:[&|]\0+|!\0)\)/g;

/**
 * Whether a text is a filter: complete items are replaced by a marker from the inside out, until one marker is left.
 */
function isFilter(text: string): boolean {
  if (text.includes('\0')) return false;
  let left = text.replace(ITEM, '\0');
  for (let before = ''; before !== left; ) {
    before = left;
    left = left.replace(COMPOUND, '\0');
  }
  return left === '\0';
}
