// The lines of the hardening checklist about the tenant: its applications, connections, users and APIs.
import { isLoopback } from '../../../http/loopback.ts';
import { wildcardsOf } from '../../../records/clients/allowed-urls.ts';
import { isManagementAudience } from '../../../records/clients/apis.ts';
import { authenticationMethod } from '../../../records/clients/client-authentication.ts';
import { idTokenAlg } from '../../../records/clients/clients.ts';
import { strategyRecord } from '../../../records/connections/connections.ts';
import { samlpOptionsSchema } from '../../../records/connections/samlp-connection.ts';
import { passwordUse } from '../../../records/database-options.ts';
import type { ClientRecord, TenantFile } from '../../../records/tenant/tenant.ts';
import { SECOND_FACTORS } from '../../../records/users/second-factors.ts';
import { defaultGrantTypes } from '../../../tenant/declared-records.ts';
import { passwordPolicy } from '../../../users/password-policy.ts';
import { type HardeningLine, named, noneOf, passed, toDo, unseen } from './line.ts';

/** Factors that a code or a number that somebody else can get does not prove (NIST SP 800-63B-4 §3.2.9, §3.1.3.3). */
const STRONG_FACTORS: readonly string[] = [
  SECOND_FACTORS.otp.name,
  SECOND_FACTORS.push.name,
  SECOND_FACTORS['webauthn-roaming'].name,
  SECOND_FACTORS['webauthn-platform'].name,
];

/** Least length of a password that is the only factor, and of one beside another (NIST SP 800-63B-4 §3.1.1.2). */
const MIN_PASSWORD = { alone: 15, withFactor: 8 };

/** Longest session and access token that need no reason, hours and seconds (NIST SP 800-63B-4 §2.1.3). */
const LONGEST = { sessionHours: 720, tokenSeconds: 86_400 };

/** Scopes with which an application can give itself all others. */
const GRANT_SCOPES: readonly string[] = ['create:client_grants', 'update:client_grants'];

const grantsOf = (client: ClientRecord): readonly string[] =>
  client.grant_types ?? defaultGrantTypes(client, authenticationMethod(client));

const isPublic = (client: ClientRecord) => authenticationMethod(client) === 'none';

/** Returns the names of the applications that a condition is true of. */
const applications = ({ clients }: TenantFile, is: (client: ClientRecord) => boolean): string[] =>
  clients.filter(is).map(({ name }) => name);

/** Whether a URL was meant for a developer's machine, or sends codes in the clear. */
function isForDevelopment({ app_type: type }: ClientRecord, url: string): boolean {
  const parsed = URL.parse(url);
  if (parsed?.protocol !== 'http:' && parsed?.protocol !== 'https:') return false;
  // A native application receives its code on the user's own machine (RFC 8252 §7.3).
  if (isLoopback(parsed.hostname)) return type !== 'native';
  return parsed.protocol === 'http:';
}

function asksEverybody({ guardianPolicies, guardianFactors }: TenantFile): boolean {
  const isOn = guardianFactors.some(({ name, enabled }) => enabled && STRONG_FACTORS.includes(name));
  return isOn && guardianPolicies.includes('all-applications');
}

/** Returns the databases whose passwords are too short for what they prove, or may be common ones. */
function weakDatabases(tenant: TenantFile): string[] {
  const least = asksEverybody(tenant) ? MIN_PASSWORD.withFactor : MIN_PASSWORD.alone;
  return tenant.databases
    .filter((database) => passwordUse(database).logsIn && database.enabled_clients.length > 0)
    .filter(({ options }) => options.enabledDatabaseCustomization !== true || options.import_mode === true)
    .flatMap(({ name, options }) => {
      const { minLength = 1, dictionary } = passwordPolicy(options);
      const wants = [
        ...(minLength < least ? [`${least} characters`] : []),
        ...(dictionary === undefined ? ['a dictionary'] : []),
      ];
      return wants.length > 0 ? [`${name} (needs ${wants.join(' and ')})`] : [];
    });
}

/** Returns what is weak about SAML, on either side. */
function weakSaml({ clients, connections }: TenantFile): string[] {
  const addons = clients.flatMap(({ name, addons: { samlp } = {} }) => {
    if (samlp === undefined) return [];
    const { signatureAlgorithm, digestAlgorithm, allowUnverifiedIdentifiers } = samlp;
    return [
      ...(signatureAlgorithm === 'rsa-sha1' || digestAlgorithm === 'sha1' ? [`${name} gets SHA-1`] : []),
      ...(allowUnverifiedIdentifiers === true ? [`${name} gets addresses that nobody proved`] : []),
    ];
  });
  const providers = connections
    .filter(({ strategy }) => strategyRecord(strategy)?.options === samlpOptionsSchema)
    .flatMap(({ name, options }) => {
      const { signatureAlgorithm, digestAlgorithm, idpinitiated } = options as Record<string, unknown>;
      return [
        ...(signatureAlgorithm === 'rsa-sha1' || digestAlgorithm === 'sha1' ? [`${name} sends SHA-1`] : []),
        ...(Object(idpinitiated).enabled === true ? [`${name} takes responses that nobody asked for`] : []),
      ];
    });
  return [...addons, ...providers];
}

/** Returns the code of the tenant that this server runs. */
function scriptsOf({
  triggers = {},
  rules = [],
  tokenExchangeProfiles = [],
  databases,
  connections,
}: TenantFile): string[] {
  const bound = Object.values(triggers).flat();
  const active = rules.filter((rule) => (rule as { enabled?: boolean }).enabled !== false);
  return [
    ...(bound.length > 0 ? [`${bound.length} actions`] : []),
    ...(active.length > 0 ? [`${active.length} rules`] : []),
    // Their actions run without being bound.
    ...tokenExchangeProfiles.map(({ name }) => `the action of the token exchange ${name}`),
    ...databases
      .filter(({ options }) => options.enabledDatabaseCustomization === true)
      .map(({ name }) => `the database scripts of ${name}`),
    ...connections
      .filter(({ options }) => Object.hasOwn(Object(options), 'scripts'))
      .map(({ name }) => `the profile script of ${name}`),
  ];
}

/** Returns the pages of the tenant's own whose scripts run where users type passwords. */
function ownPages({ pages = [], branding, clients }: TenantFile): string[] {
  return [
    ...pages
      .filter(({ enabled, html }) => enabled !== false && html !== undefined)
      .map(({ name }) => `pages: ${name}`),
    ...(branding.templates ?? []).map(({ template }) => `the template ${template}`),
    ...clients
      .filter(({ custom_login_page: page, custom_login_page_on: on }) => page !== undefined && on !== false)
      .map(({ name }) => `the page of ${name}`),
  ];
}

/** Returns the parts of the protection against guesses that are off. */
function protectionOff({ attackProtection, databases, connections }: TenantFile): string[] {
  const { bruteForceProtection: account, suspiciousIpThrottling: address } = attackProtection;
  return [
    ...(account.enabled && account.shields.includes('block') ? [] : ['bruteForceProtection']),
    ...(address.enabled && address.shields.includes('block') ? [] : ['suspiciousIpThrottling']),
    ...[...databases, ...connections]
      .filter(({ options }) => (options as Record<string, unknown>).brute_force_protection === false)
      .map(({ name }) => `the connection ${name}`),
  ];
}

export const TENANT_LINES: readonly HardeningLine[] = [
  {
    id: 'guesses',
    demand:
      'Keep `bruteForceProtection` and `suspiciousIpThrottling` on, with the shield `block`, for every connection.',
    check: ({ tenant }) =>
      noneOf(protectionOff(tenant), {
        todo: 'switch on, with the shield block',
        good: 'both are on and block, for every connection',
      }),
  },
  {
    id: 'passwords',
    demand:
      'Require passwords of 15 characters, or of 8 where everybody has a second factor, and refuse common ones (`password_options.dictionary`; NIST SP 800-63B-4 §3.1.1.2).',
    check: ({ tenant }) =>
      noneOf(weakDatabases(tenant), { todo: 'require more of', good: 'every database requires enough' }),
  },
  {
    id: 'second-factors',
    demand:
      'Switch on a factor that is more than a code by SMS or e-mail, and ask everybody for one (`all-applications`), or those who are not known (`confidence-score`).',
    check: ({ tenant }) => {
      const { guardianPolicies: policies, guardianFactors: factors } = tenant;
      const isOn = factors.some(({ name, enabled }) => enabled && STRONG_FACTORS.includes(name));
      if (!isOn) return toDo(`switch on one of ${STRONG_FACTORS.join(', ')}`);
      return policies.includes('all-applications') || policies.includes('confidence-score')
        ? passed(`the policy is ${policies.join(', ')}`)
        : toDo('nobody is asked: set guardianPolicies');
    },
  },
  {
    id: 'enumeration',
    demand: 'Do not tell strangers at sign-up who has an account (`enable_public_signup_user_exists_error`).',
    check: ({ tenant: { tenant } }) =>
      tenant.flags.enable_public_signup_user_exists_error === true
        ? toDo('set tenant.flags.enable_public_signup_user_exists_error to false')
        : passed('a taken address gives the usual answer'),
  },
  {
    id: 'resets',
    demand: 'Let a password reset end all sessions (leave `keep_sessions_on_password_reset` off).',
    check: ({ tenant: { tenant } }) =>
      tenant.flags.keep_sessions_on_password_reset === true
        ? toDo('set tenant.flags.keep_sessions_on_password_reset to false')
        : passed('a reset ends them'),
  },
  {
    id: 'sessions',
    demand:
      'Let sessions end after thirty days at the latest (`session_lifetime`; NIST SP 800-63B-4 §2.1.3).',
    check: ({ tenant: { tenant } }) =>
      tenant.session_lifetime > LONGEST.sessionHours
        ? toDo(`session_lifetime is ${tenant.session_lifetime} hours`)
        : passed(`they end after ${tenant.session_lifetime} hours`),
  },
  {
    id: 'grants',
    demand:
      'Take the grants `password` and `implicit` from all applications (RFC 9700 §2.1.2, §2.4). Use the code flow with PKCE.',
    check: ({ tenant }) =>
      noneOf(
        applications(tenant, (client) =>
          grantsOf(client).some((grant) => /^(password|implicit)$|password-realm$/.test(grant)),
        ),
        { todo: 'take password and implicit from', good: 'no application has either' },
      ),
  },
  {
    id: 'callbacks',
    demand:
      'Remove callbacks of development: `http:` and, except of native applications, `localhost` (RFC 9700 §2.1, RFC 8252 §7.3).',
    check: ({ tenant }) =>
      noneOf(
        applications(tenant, (client) => client.callbacks.some((url) => isForDevelopment(client, url))),
        {
          todo: 'remove http and localhost from',
          good: 'none is http or localhost, but for native applications',
        },
      ),
  },
  {
    id: 'wildcards',
    demand:
      'Name each host in callbacks, logout URLs and origins: with a wildcard, any page below the domain can receive logins (RFC 9700 §2.1). For organizations, `{organization_name}` takes its place.',
    check: ({ tenant }) =>
      noneOf(
        [
          ...(wildcardsOf(tenant.tenant).length > 0 ? ['the tenant'] : []),
          ...applications(tenant, (client) => wildcardsOf(client).length > 0),
        ],
        { todo: 'name the hosts in place of the wildcards of', good: 'no URL has a wildcard' },
      ),
  },
  {
    id: 'refresh-tokens',
    demand:
      'Let refresh tokens of public applications rotate, or bind them to a key (`require_proof_of_possession`; RFC 9700 §2.2.2).',
    check: ({ tenant }) =>
      noneOf(
        applications(
          tenant,
          (client) =>
            isPublic(client) &&
            grantsOf(client).includes('refresh_token') &&
            client.refresh_token.rotation_type !== 'rotating' &&
            client.require_proof_of_possession !== true,
        ),
        { todo: 'let them rotate for', good: 'those of public applications rotate or are bound' },
      ),
  },
  {
    id: 'shared-keys',
    demand:
      'Sign no tokens with a shared secret (`HS256`): whoever can check such a token can make one. Use RS256, PS256, ES256 or EdDSA.',
    check: ({ tenant }) =>
      noneOf(
        [
          ...applications(tenant, (client) => idTokenAlg(client) === 'HS256'),
          ...tenant.resourceServers.filter(({ signing_alg: alg }) => alg === 'HS256').map(({ name }) => name),
        ],
        { todo: 'replace HS256 for', good: 'no token is signed with a shared secret' },
      ),
  },
  {
    id: 'token-lifetime',
    demand:
      'Let access tokens of your APIs end after a day at the latest (`token_lifetime`): an API that checks JWTs itself does not see that they have ended.',
    check: ({ tenant: { resourceServers } }) =>
      noneOf(
        resourceServers
          .filter(({ token_lifetime: life }) => life > LONGEST.tokenSeconds)
          .map(({ name }) => name),
        { todo: 'shorten token_lifetime of', good: 'none lasts for more than a day' },
      ),
  },
  {
    id: 'management-access',
    demand:
      'Give each application that calls the Management API only the scopes that it needs. One with all scopes, or with a scope to create or change client grants, which can give itself all others, is as powerful as an editor.',
    check: ({ tenant: { clientGrants, clients } }) => {
      const nameOf = (id: string) => clients.find(({ client_id }) => client_id === id)?.name ?? id;
      const powerful = clientGrants
        .filter(({ audience }) => isManagementAudience(audience))
        .filter(
          ({ scope, allow_all_scopes: isAll }) =>
            isAll === true || scope.some((one) => GRANT_SCOPES.includes(one)),
        )
        .map(({ client_id = '' }) => nameOf(client_id));
      return noneOf(powerful, {
        todo: 'narrow the scopes of',
        good: 'no application has all scopes, or can give them to itself',
      });
    },
  },
  {
    id: 'management-networks',
    demand:
      'Let only your own networks call the Management API, with a network access control list of the scope `management`.',
    check: ({ tenant: { networkACLs = [] } }) => {
      const active = networkACLs.filter(
        ({ active: isActive, rule }) =>
          isActive === true && rule.action.block === true && ['management', 'tenant'].includes(rule.scope),
      );
      const names = named(active.map(({ description }) => description));
      if (active.length === 0) return toDo('no active list blocks by network');
      // What blocks some lets all others in.
      return active.some(({ rule }) => rule.not_match !== undefined)
        ? passed(names)
        : unseen(`see that what is blocked is everything but your own networks: ${names}`);
    },
  },
  {
    id: 'cross-origin',
    demand:
      'Let users type passwords on the login page only: leave `cross_origin_authentication` off. With it, the application’s page sees them.',
    check: ({ tenant }) =>
      noneOf(
        applications(tenant, ({ cross_origin_authentication: isOn }) => isOn === true),
        {
          todo: 'switch cross_origin_authentication off for',
          good: 'no application takes passwords on its own page',
        },
      ),
  },
  {
    id: 'own-pages',
    demand:
      'Read login pages and page templates of your own as you read server code: their scripts see passwords.',
    check: ({ tenant }) => {
      const pages = ownPages(tenant);
      return pages.length > 0
        ? unseen(`read them, and see who may change them: ${named(pages)}`)
        : passed('there are none');
    },
  },
  {
    id: 'scripts',
    demand:
      'Review actions, rules and scripts, and who may change them: they see profiles, hold their secrets, and decide who is let in.',
    check: ({ tenant }) => {
      const scripts = scriptsOf(tenant);
      return scripts.length > 0
        ? unseen(`read them, and see who may change them: ${named(scripts)}`)
        : passed('there are none');
    },
  },
  {
    id: 'saml',
    demand:
      'Use SHA-256 or better in SAML, do not take responses that nobody asked for (`idpinitiated`), and tell no application an address that nobody has proved.',
    check: ({ tenant }) =>
      noneOf(weakSaml(tenant), { todo: 'mend', good: 'no application and no connection does any of this' }),
  },
  {
    id: 'directories',
    demand: 'Talk to directories by `ldaps:` or StartTLS: passwords go through that connection.',
    check: ({ tenant: { connections } }) =>
      noneOf(
        connections
          .filter(({ options }) => {
            const { LDAP_URL: url, LDAP_STARTTLS: startTls } = options as Record<string, unknown>;
            return URL.parse(String(url))?.protocol === 'ldap:' && String(startTls) === 'false';
          })
          .map(({ name }) => name),
        { todo: 'use ldaps: or StartTLS for', good: 'no directory is reached without TLS' },
      ),
  },
];
