// The options of connections to a directory (`ad`, `auth0-adldap`), in the words of the hosted service's own connector.
import { X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { upstreamOptions, withoutNull } from './upstream.ts';

/** Where a filter has the name that was typed, or the DN of the user whose groups are looked for. */
export const PLACEHOLDER = '{0}';

/** Matches what was typed against the names that directories know people by. */
const BY_NAME = '(|(sAMAccountName={0})(userPrincipalName={0})(mail={0})(uid={0}))';

const distinguishedName = z.string().max(1024);

const filter = z
  .string()
  .max(1024)
  .refine((text) => text.includes(PLACEHOLDER), `must contain ${PLACEHOLDER}`)
  .refine(isFilter, 'is no filter (RFC 4515 §3)');

/** A switch; the connector's own settings are texts. */
const flag = z.union([z.boolean(), z.enum(['true', 'false']).transform((text) => text === 'true')]);

/** The options, as they are meant. */
export const ldapOptionsSchema = z.preprocess(
  withoutNull,
  z
    .looseObject({
      ...upstreamOptions,
      /**
       * `ldaps://host[:port]`, or `ldap://host[:port]` with StartTLS. A connection of a tenant that was exported elsewhere has
       * none: an agent beside the directory had it.
       */
      LDAP_URL: z
        .string()
        .refine(isDirectoryUrl, 'must be ldaps://host[:port] or ldap://host[:port]')
        .optional(),
      LDAP_BASE: distinguishedName.min(1).optional(),
      /** A DN; without it searches are anonymous. */
      LDAP_BIND_USER: distinguishedName.default(''),
      LDAP_BIND_PASSWORD: z.string().max(1024).default(''),
      LDAP_USER_BY_NAME: filter.default(BY_NAME),
      /** Finds the groups of a DN in one search; without it they are followed upwards by `member` and `uniqueMember`. */
      LDAP_SEARCH_GROUPS: filter.optional(),
      /** Where groups are; the same as users by default. */
      LDAP_GROUPS_BASE: distinguishedName.optional(),
      GROUPS: flag.default(true),
      /** The attribute that a group is named by. */
      GROUP_PROPERTY: z
        .string()
        .regex(/^[A-Za-z][A-Za-z0-9-]*$/)
        .default('cn'),
      GROUPS_TIMEOUT_SECONDS: z.coerce.number().int().min(1).max(60).default(20),
      /** Whether an `ldap:` connection becomes one with TLS before anything is said on it. */
      LDAP_STARTTLS: flag.default(true),
      /** Certificates that the directory's may be issued by, beside the system's: PEM. */
      LDAP_CA: z.string().max(65_536).refine(isPem, 'must be certificates in PEM').optional(),
      /** Names of attributes by the member of the profile that they set. */
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

/** Those of a directory that can be asked. */
export type LdapOptions = z.output<typeof ldapOptionsSchema> & { LDAP_URL: string; LDAP_BASE: string };

/**
 * The options of a connection, as they are meant.
 * @returns undefined for one without a directory. @throws ZodError for options that were never checked.
 */
export function ldapOptions({ options }: { options: unknown }): LdapOptions | undefined {
  const { LDAP_URL, LDAP_BASE, ...rest } = ldapOptionsSchema.parse(options);
  return LDAP_URL === undefined || LDAP_BASE === undefined ? undefined : { ...rest, LDAP_URL, LDAP_BASE };
}

/** The certificates of a text of PEM blocks. */
export function certificatesOf(pem: string): string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
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

/** Whether a text is a filter: what is complete becomes one mark, from the inside out, until one mark is left. */
function isFilter(text: string): boolean {
  if (text.includes('\0')) return false;
  let left = text.replace(ITEM, '\0');
  for (let before = ''; before !== left; ) {
    before = left;
    left = left.replace(COMPOUND, '\0');
  }
  return left === '\0';
}
