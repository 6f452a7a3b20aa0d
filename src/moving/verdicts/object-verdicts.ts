// Verdicts that need more of an object than one member: its kind, its name, or its code.
import { z } from 'zod';
import { SCREENS } from '../../capabilities/pages/custom-texts.ts';
import { strategyRecord } from '../../records/connections/connections.ts';
import { TRIGGER_ENTRIES } from '../../records/tenant/actions.ts';
import { MAIL_PROVIDERS, MAX_RESET_SECONDS } from '../../records/tenant/delivery.ts';
import { sinkOf } from '../../records/tenant/log-streams.ts';
import { networkAclWarnings } from '../../records/tenant/network-acls.ts';
import type { PhoneTemplateType } from '../../records/tenant/phone-templates.ts';
import { grantsOfEntries, organizationGrantSchema } from '../../records/users/organization-grants.ts';
import { SECOND_FACTORS } from '../../records/users/second-factors.ts';
import { clientIdOf } from '../../tenant/names.ts';
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
  databases: ({ options }) => {
    const { enabledDatabaseCustomization, customScripts } = (options ?? {}) as Item;
    const hasLogin = typeof (customScripts as Item | null)?.login === 'string';
    return enabledDatabaseCustomization === true && !hasLogin
      ? [absent('nobody can log in: the script login is not in the export', 'options', 'customScripts')]
      : [];
  },
  actions: ({ supported_triggers: triggers, code }) => [
    ...items(triggers)
      .filter(({ id }) => !isTrigger(id))
      .map(({ id }) => absent(`Actions of the trigger ${String(id)} do not run`, 'supported_triggers')),
    ...(typeof code === 'string' && code.includes('api.prompt.render')
      ? [absent('api.prompt.render fails, and with it the login: there are no forms', 'code')]
      : []),
  ],
  triggers: (_item, name) => (isTrigger(name) ? [] : [absent('Actions of this trigger do not run')]),
  rules: ({ enabled = true, stage = 'login_success' }) =>
    enabled === true && stage === 'login_success'
      ? [
          differently(
            'rules run in QuickJS, each in a run of its own; packages only as far as they are read there',
            'actions-scripts.md#each-rule-is-a-run-of-its-own',
            'script',
          ),
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
  pages: ({ name, enabled, html }) => {
    if (enabled === false || name === 'login' || String(html ?? '').trim() === '') return [];
    return [absent('the customized page is not shown: ours is', 'html')];
  },
  logStreams: ({ type }) =>
    sinkOf(type) === undefined
      ? [absent(`nothing is sent to ${String(type)}: a stream of the type http is`, 'type')]
      : [],
  networkACLs: (acl) => networkAclWarnings(acl).map((warning) => absent(warning, 'rule')),
  guardianFactorProviders: ({ name, provider }) =>
    name === SECOND_FACTORS.push.name
      ? [
          absent(
            'no notifications are pushed to the app by this account: logins are approved at /authenticator',
            'provider',
          ),
        ]
      : provider === SNS
        ? [absent('messages are not sent through this account', 'provider')]
        : [],
  prompts: ofPrompts,
};

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

function ofConnection({ strategy, options }: Item, name: string): Said[] {
  const record = strategyRecord(String(strategy));
  if (record === undefined)
    return [absent(`${String(strategy)} is not built in: nobody can log in with ${name}`, 'strategy')];
  return OF_STRATEGY[String(strategy)]?.((options ?? {}) as Item) ?? [];
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
  waad: ({ use_wsfed, waad_protocol }) =>
    use_wsfed === true || waad_protocol === 'ws-federation'
      ? [absent('WS-Federation is not spoken: switch the connection to OpenID Connect', 'options')]
      : [],
  ad: ofDirectory,
  'auth0-adldap': ofDirectory,
};

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
