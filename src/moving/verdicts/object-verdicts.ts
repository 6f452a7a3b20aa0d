// Verdicts that need more of an object than one member: its kind, its name, or its code.
import { z } from 'zod';
import { SCREENS } from '../../capabilities/pages/custom-texts.ts';
import { packagesNamed } from '../../capabilities/scripts/packages/bundle.ts';
import { BUILT_IN_MODULES } from '../../capabilities/scripts/stand-ins.ts';
import { strategyRecord } from '../../records/connections/connections.ts';
import { asksGraph } from '../../records/connections/openid.ts';
import { TRIGGER_ENTRIES } from '../../records/tenant/actions.ts';
import { MAIL_PROVIDERS, MAX_RESET_SECONDS } from '../../records/tenant/delivery.ts';
import { sinkOf } from '../../records/tenant/log-streams.ts';
import { networkAclWarnings } from '../../records/tenant/network-acls.ts';
import type { PhoneTemplateType } from '../../records/tenant/phone-templates.ts';
import { grantsOfEntries, organizationGrantSchema } from '../../records/users/organization-grants.ts';
import { SECOND_FACTORS } from '../../records/users/second-factors.ts';
import { clientIdOf } from '../../tenant/names.ts';
import { isFactorOff } from '../second-factors.ts';
import type { Item, Statement } from './verdict.ts';

type Said = Omit<Statement, 'path'> & { path?: readonly string[] };

const absent = (says: string, ...path: string[]): Said => ({ verdict: 'not in force', says, path });
const differently = (says: string, decision: string, ...path: string[]): Said => ({
  verdict: 'in force, differently',
  says,
  decision: decision.startsWith('/') ? decision.slice(1) : `understand/decisions/${decision}`,
  path,
});

const items = (value: unknown): Item[] =>
  Array.isArray(value) ? value.filter((one): one is Item => typeof one === 'object' && one !== null) : [];

/** Returns what there is to say about an object of a section as a whole; paths are within it. */
export function objectStatements(section: string, item: Item, name: string, sections: Item): Said[] {
  return OBJECTS[section]?.(item, name, sections) ?? [];
}

const OBJECTS: Readonly<Record<string, (item: Item, name: string, sections: Item) => Said[]>> = {
  organizations: ofOrganization,
  connections: ofConnection,
  databases: (item, _name, sections) => [...ofCustomDatabase(item), ...ofFactorSwitch(item, sections)],
  actions: ({ supported_triggers: triggers, code, dependencies }) => [
    ...ofDrivers(
      items(dependencies).map(({ name }) => String(name)),
      'dependencies',
    ),
    ...items(triggers)
      .filter(({ id }) => !isTrigger(id))
      .map(({ id }) => absent(`Actions of the trigger ${String(id)} do not run`, 'supported_triggers')),
    ...(typeof code === 'string' && code.includes('api.prompt.render')
      ? [absent('api.prompt.render fails, and with it the login: there are no forms', 'code')]
      : []),
  ],
  triggers: (_item, name) => (isTrigger(name) ? [] : [absent('Actions of this trigger do not run')]),
  rules: ({ enabled = true, stage = 'login_success', script }) =>
    enabled === true && stage === 'login_success'
      ? [
          differently(
            'rules run in QuickJS, each in a run of its own; packages only as far as they are read there',
            'actions-scripts.md#each-rule-is-a-run-of-its-own',
            'script',
          ),
          ...ofPackages([script], 'script'),
        ]
      : [],
  guardianFactors: ({ name, enabled }) => {
    if (enabled !== true) return [];
    if (name === 'duo')
      return [absent('users cannot use Duo: those who have no other factor enrol anew', 'enabled')];
    if (name !== SECOND_FACTORS.push.name) return [];
    const says =
      'logins are approved in Gatehouse’s own authenticator at /authenticator: users enrol it once';
    return [differently(says, '/reference/authenticator-api.md', 'enabled')];
  },
  emailProvider: ({ name, enabled }) =>
    enabled === false || MAIL_PROVIDERS.some((one) => one.name === name)
      ? []
      : [
          differently(
            'mail is sent by SMTP, to the endpoint that the provider has for it',
            'passwordless-messages.md#mail-is-sent-by-smtp-only',
            'name',
          ),
        ],
  emailTemplates: ({ template, enabled, urlLifetimeInSeconds: seconds }) => {
    if (enabled !== true) return [];
    if (!SENT_TEMPLATES.has(String(template))) return [absent('no such mail is sent', 'template')];
    return template === 'reset_email' && Number(seconds) > MAX_RESET_SECONDS
      ? [
          differently(
            `links that reset a password are good for ${MAX_RESET_SECONDS / 3600} hours at most`,
            'passwords-protection.md#reset-links-are-valid-for-four-hours',
            'urlLifetimeInSeconds',
          ),
        ]
      : [];
  },
  phoneTemplates: ({ type, disabled }) =>
    disabled === true || SENT_PHONE_TEMPLATES.has(String(type))
      ? []
      : [absent('no such text message is sent', 'type')],
  pages: ({ name, enabled, html, url }) => {
    if (enabled === false || name === 'login') return [];
    if (String(html ?? '').trim() !== '')
      return [absent('the customized page is not shown: ours is', 'html')];
    return name === 'error_page' && String(url ?? '') !== ''
      ? [absent('errors are shown on our page, not on this one', 'url')]
      : [];
  },
  logStreams: ({ type }) =>
    sinkOf(type) === undefined
      ? [absent(`nothing is sent to ${String(type)}: a stream of the type http is`, 'type')]
      : [],
  networkACLs: (acl) => networkAclWarnings(acl).map((warning) => absent(warning, 'rule')),
  guardianFactorProviders: ({ name, provider }, _name, sections) => {
    if (isFactorOff(sections, name)) return [];
    if (name === SECOND_FACTORS.push.name)
      return [
        SELECTED,
        absent(
          'no notifications are pushed to the app by this account: logins are approved at /authenticator',
          'provider',
        ),
      ];
    return provider === SNS
      ? [SELECTED, absent('messages are not sent through this account', 'provider')]
      : [SELECTED];
  },
  guardianPhoneFactorSelectedProvider: (_item, _name, sections) =>
    isFactorOff(sections, SECOND_FACTORS.sms.name) ? [] : [SELECTED],
  prompts: ofPrompts,
};

const SELECTED = differently(
  'the choice of a provider has no effect: codes are sent by the Action that is bound for it, else by phoneProviders, or by the account that the environment names',
  'management-api.md#these-settings-are-accepted-with-a-warning-that-names-them',
);

/** Says what becomes of the scripts of a custom database, while they are in use. */
function ofCustomDatabase({ options }: Item): Said[] {
  const { enabledDatabaseCustomization, customScripts } = (options ?? {}) as Item;
  if (enabledDatabaseCustomization !== true) return [];
  const { login, ...others } = (customScripts ?? {}) as Item;
  const at = ['options', 'customScripts'];
  if (typeof login !== 'string')
    return [absent('nobody can log in: the script login is not in the export', ...at)];
  return [
    differently(
      'scripts run in QuickJS, without Node.js: packages only as far as they are read there',
      'actions-scripts.md#scripts-run-in-quickjs-compiled-to-webassembly-in-threads',
      ...at,
    ),
    ...ofPackages([login, ...Object.values(others)], ...at),
  ];
}

/** Policies are the only ones to ask for a second factor by themselves. */
function ofFactorSwitch({ options }: Item, { guardianPolicies }: Item): Said[] {
  const { mfa } = (options ?? {}) as Item;
  const policies = (guardianPolicies as Item | null | undefined)?.policies ?? guardianPolicies;
  const isExempt = (mfa as Item | null | undefined)?.active === false;
  return isExempt && Array.isArray(policies) && policies.length > 0
    ? [absent('guardianPolicies ask users of this connection for a second factor, too', 'options', 'mfa')]
    : [];
}

/** Says which client grants an organization does not get, because the export does not say which they are. */
function ofOrganization({ client_grants: granted }: Item, _name: string, sections: Item): Said[] {
  const entries = z.array(organizationGrantSchema).safeParse(granted ?? []).data ?? [];
  const clients = items(sections.clients).flatMap(({ client_id, name }) =>
    typeof client_id === 'string' && typeof name === 'string' ? [{ client_id, name }] : [],
  );
  const clientId = clientIdOf({ clients });
  const grants = items(sections.clientGrants).map(({ id, client_id, audience, organization_usage }) => ({
    ...(typeof id === 'string' && { id }),
    ...(typeof client_id === 'string' && { client_id: clientId(client_id) }),
    audience: String(audience),
    organization_usage: String(organization_usage),
  }));
  return grantsOfEntries(entries, grants, clientId).unclear.map(({ index, says }) =>
    absent(says, 'client_grants', String(index)),
  );
}

/** Amazon's service, which sends neither messages nor notifications here. */
const SNS = 'sns';

const isTrigger = (name: unknown): boolean =>
  typeof name === 'string' && Object.hasOwn(TRIGGER_ENTRIES, name);

/** Its types of messages to phones that are sent here, too. */
const SENT_PHONE_TEMPLATES: ReadonlySet<string> = new Set<PhoneTemplateType>(['otp_verify', 'otp_enroll']);

/** The hosted service's templates that are mails here, too. */
const SENT_TEMPLATES: ReadonlySet<string> = new Set([
  ...[
    'verify_email',
    'reset_email',
    'welcome_email',
    'user_invitation',
    'enrollment_email',
    'blocked_account',
  ],
  ...['mfa_oob_code', 'async_approval'],
]);

function ofConnection(item: Item, name: string, sections: Item): Said[] {
  const { strategy, options } = item;
  const record = strategyRecord(String(strategy));
  if (record === undefined)
    return [absent(`${String(strategy)} is not built in: nobody can log in with ${name}`, 'strategy')];
  return [
    ...(OF_STRATEGY[String(strategy)]?.((options ?? {}) as Item) ?? []),
    ...ofFactorSwitch(item, sections),
  ];
}

const ofDirectory = (): Said[] => [
  differently(
    'the server asks the directory itself, and not through the hosted service’s connector',
    'connections.md#directories-are-queried-directly',
    'strategy',
  ),
];

const OF_STRATEGY: Readonly<Record<string, (options: Item) => Said[]>> = {
  adfs: ({ client_id }) =>
    (client_id ?? '') === ''
      ? [absent('WS-Federation is not spoken: register an OpenID Connect application at AD FS', 'options')]
      : [],
  waad: (options) =>
    options.use_wsfed === true || options.waad_protocol === 'ws-federation'
      ? [absent('WS-Federation is not spoken: switch the connection to OpenID Connect', 'options')]
      : ofEntraV1(options),
  ad: ofDirectory,
  'auth0-adldap': ofDirectory,
};

/** Says what is not read of Entra's users by the older endpoints, whose tokens are not for Microsoft Graph. */
function ofEntraV1({ identity_api, ...options }: Item): Said[] {
  const asked = Object.keys(options).filter((name) => asksGraph(name) && options[name] === true);
  if (identity_api !== 'azure-active-directory-v1.0' || asked.length === 0) return [];
  const says = `${asked.join(', ')}: with this identity_api nothing is read from Microsoft Graph; choose microsoft-identity-platform-v2.0`;
  return [absent(says, 'options', 'identity_api')];
}

/**
 * Packages that open connections of their own, as all clients of databases do that do not speak HTTP: those of the hosted
 * service's templates for custom databases, and what else is in frequent use.
 */
const DRIVERS: readonly string[] = [
  ...['mongodb', 'mongoose', 'mysql', 'mysql2', 'pg', 'pg-promise', 'tedious', 'mssql', 'oracledb'],
  ...['cassandra-driver', 'couchbase', 'redis', 'ioredis', 'ldapjs', 'nodemailer', 'sequelize', 'knex'],
];

function ofDrivers(names: readonly string[], ...path: string[]): Said[] {
  const drivers = names.filter((name) => DRIVERS.includes(name));
  if (drivers.length === 0) return [];
  const says = `scripts that use ${drivers.sort().join(', ')} fail: they have no connections of their own, and reach others by HTTP alone`;
  return [{ ...absent(says, ...path), decision: 'do/connections/custom-databases.md' }];
}

/** Says which packages scripts without a list of them need. */
function ofPackages(scripts: readonly unknown[], ...path: string[]): Said[] {
  const all = scripts.flatMap((script) => (typeof script === 'string' ? packagesNamed(script) : []));
  const names = [...new Set(all)].filter((name) => !BUILT_IN_MODULES.includes(name)).sort();
  const others = names.filter((name) => !DRIVERS.includes(name));
  return [
    ...ofDrivers(names, ...path),
    ...(others.length === 0
      ? []
      : [
          differently(
            `these packages have to be installed beside the server, where scripts read them: ${others.join(', ')}`,
            'actions-scripts.md#rules-and-database-scripts-have-the-packages-that-they-require-by-name',
            ...path,
          ),
        ]),
  ];
}

/** The texts that pages show, as `prompt/screen/key`. */
const shownTexts = (): ReadonlySet<string> => {
  const prompts = Object.values(SCREENS).flatMap((texts) => Object.values(texts));
  return new Set(prompts);
};

function ofPrompts({ customText }: Item): Said[] {
  const shown = shownTexts();
  return Object.entries((customText ?? {}) as Item).flatMap(([language, prompts]) => {
    const unknown = Object.entries((prompts ?? {}) as Item).flatMap(([prompt, screens]) =>
      Object.entries((screens ?? {}) as Item).flatMap(([screen, texts]) =>
        Object.keys((texts ?? {}) as Item)
          .map((key) => `${prompt}/${screen}/${key}`)
          .filter((at) => !shown.has(at)),
      ),
    );
    if (unknown.length === 0) return [];
    const some = unknown.slice(0, 3).join(', ');
    const more = unknown.length > 3 ? ` and ${unknown.length - 3} more` : '';
    const says = `no page has these texts in ${language}: ${some}${more}`;
    return [{ ...absent(says, 'customText', language), decision: 'reference/custom-texts.md' }];
  });
}
